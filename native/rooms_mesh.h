// The ground as few rectangles: cells of equal height and material are merged, and so are the steps between them.
#pragma once

#include "rooms.h"
#include "rooms_maths.h"

namespace softcount {
namespace rooms {
namespace {

// Heights as drawn: a mover's cells are the ground that is there when it is down; the mover is drawn by itself.
void still_heights(const State& s, float* heights) {
    for (int i = 0; i < kSide * kSide; ++i) heights[i] = kWall;
    for (int row = 0; row < s.rows; ++row)
        for (int column = 0; column < s.columns; ++column)
            heights[row * kSide + column] = s.heights[row * kSide + column];
    for (int i = 0; i < s.num_movers; ++i) {
        const Mover& m = s.movers[i];
        for (int row = m.row0; row < m.row1; ++row)
            for (int column = m.column0; column < m.column1; ++column)
                heights[row * kSide + column] = least(m.closed, m.open);
    }
}

bool add(Mesh& mesh, const Quad& quad) {
    if (mesh.num == kMaxQuads) return false;
    mesh.quads[mesh.num++] = quad;
    return true;
}

bool merge_tops(const State& s, const float* heights, Mesh& mesh) {
    bool is_done[kSide * kSide] = {};
    for (int row = 0; row < s.rows; ++row)
        for (int column = 0; column < s.columns; ++column) {
            const int first = row * kSide + column;
            if (is_done[first] || heights[first] >= kWall) continue;
            const auto is_same = [&](int cell) {
                return !is_done[cell] && heights[cell] == heights[first] && s.tops[cell] == s.tops[first];
            };
            int right = column + 1, below = row + 1;
            while (right < s.columns && is_same(row * kSide + right)) ++right;
            for (bool is_equal = true; below < s.rows; ++below) {
                for (int k = column; k < right && is_equal; ++k) is_equal = is_same(below * kSide + k);
                if (!is_equal) break;
            }
            for (int i = row; i < below; ++i)
                for (int k = column; k < right; ++k) is_done[i * kSide + k] = true;
            const Quad quad{2, s.tops[first], 1.0f, heights[first], (float)column * kCell, (float)right * kCell,
                            (float)row * kCell, (float)below * kCell};
            if (!add(mesh, quad)) return false;
        }
    return true;
}

// Sides that look along an axis: between each line of cells and the next, runs of one step are one rectangle.
bool merge_sides(const State& s, const float* heights, int axis, Mesh& mesh) {
    const int num_lines = axis == 0 ? s.columns : s.rows, length = axis == 0 ? s.rows : s.columns;
    const auto cell = [&](int line, int along) { return axis == 0 ? along * kSide + line : line * kSide + along; };
    for (int line = 1; line < num_lines; ++line) {
        int start = 0;
        for (int k = 1; k <= length; ++k) {
            const int a = cell(line - 1, start), b = cell(line, start);
            const bool is_up = heights[b] > heights[a];
            const int high = is_up ? b : a, low = is_up ? a : b;
            if (k < length) {
                const int a1 = cell(line - 1, k), b1 = cell(line, k);
                const bool is_equal = heights[a] == heights[a1] && heights[b] == heights[b1] &&
                                      s.sides[high] == s.sides[is_up ? b1 : a1];
                if (is_equal) continue;
            }
            if (heights[a] != heights[b]) {
                const float top = heights[high] >= kWall ? s.cap : heights[high];
                const Quad quad{axis, s.sides[high], is_up ? -1.0f : 1.0f, (float)line * kCell, (float)start * kCell,
                                (float)k * kCell, heights[low], top};
                if (top > heights[low] && !add(mesh, quad)) return false;
            }
            start = k;
        }
    }
    return true;
}

bool merge(const State& s, Mesh& mesh) {
    float heights[kSide * kSide];
    still_heights(s, heights);
    mesh.num = 0;
    return merge_tops(s, heights, mesh) && merge_sides(s, heights, 0, mesh) && merge_sides(s, heights, 1, mesh);
}

}  // namespace
}  // namespace rooms
}  // namespace softcount
