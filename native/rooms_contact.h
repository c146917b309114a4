// Where bodies touch cells and each other. Everything is horizontal: a `Push` says which way and how far one has to
// move to be free. Bodies are upright boxes, balls, and sticks, which are rows of small balls.
#pragma once

#include "rooms.h"
#include "rooms_maths.h"

namespace softcount {
namespace rooms {
namespace {

constexpr float kLedge = 0.02f;       // a cell that is this much higher still carries
constexpr float kOverlap = 0.03f;     // bodies that share less height than this stand on each other
constexpr int kStickBalls = 9;

struct Push {
    float nx = 0.0f, ny = 0.0f, depth = 0.0f;
};

struct Ball {
    float x, y, z, radius;
};

inline float height_at(const State& s, int column, int row) {
    if (column < 0 || row < 0 || column >= s.columns || row >= s.rows) return kWall;
    return s.heights[row * kSide + column];
}

inline int cell_of(float x) { return x <= 0.0f ? -1 : (int)(x * (1.0f / kCell)); }

inline float bottom_of(const Body& b) { return b.z - b.hz; }
inline float top_of(const Body& b) { return b.z + b.hz; }
inline bool is_alive(const Body& b) { return (b.flags & kAlive) != 0; }
inline bool is_fixed(const Body& b) { return (b.flags & (kLiftable | kPushable)) == 0; }

// The radius of a circle around the body, from above.
inline float reach_of(const Body& b) { return b.kind == kBox ? root(b.hx * b.hx + b.hy * b.hy) : b.hx; }

inline Ball ball_of_stick(const Body& b, int i) {
    const float radius = b.hz, along = (b.hx - radius) * ((float)i * (2.0f / (kStickBalls - 1)) - 1.0f);
    const float flat = cosine(b.pitch) * along;
    return {b.x + cosine(b.yaw) * flat, b.y + sine(b.yaw) * flat, b.z + sine(b.pitch) * along, radius};
}

// ---- cells

// How far a ball (or, with `z` at the ground, a disc) is in cells higher than `bottom`; `low` cells block it too.
Push ball_in_cells(const State& s, const Ball& ball, float bottom, float low = -1000.0f) {
    Push deepest;
    const float r = ball.radius;
    const int c0 = cell_of(ball.x - r), c1 = cell_of(ball.x + r), r0 = cell_of(ball.y - r), r1 = cell_of(ball.y + r);
    for (int row = r0; row <= r1; ++row)
        for (int column = c0; column <= c1; ++column) {
            const float h = height_at(s, column, row);
            if (h <= bottom && h >= low) continue;
            const float above = h < low ? 0.0f : most(0.0f, ball.z - h), r2 = r * r - above * above;
            if (r2 <= 0.0f) continue;
            const float x0 = (float)column * kCell, y0 = (float)row * kCell;
            const float dx = ball.x - within(ball.x, x0, x0 + kCell), dy = ball.y - within(ball.y, y0, y0 + kCell);
            const float d2 = dx * dx + dy * dy;
            if (d2 >= r2) continue;
            Push push;
            if (d2 > 1e-10f) {
                const float d = root(d2);
                push = {dx / d, dy / d, root(r2) - d};
            } else {  // the centre is inside: out by the nearest side
                const float mx = ball.x - (x0 + 0.5f * kCell), my = ball.y - (y0 + 0.5f * kCell);
                const bool by_x = size_of(mx) > size_of(my);
                const float m = by_x ? mx : my, sign = m < 0.0f ? -1.0f : 1.0f;
                push = {by_x ? sign : 0.0f, by_x ? 0.0f : sign, 0.5f * kCell - size_of(m) + root(r2)};
            }
            if (push.depth > deepest.depth) deepest = push;
        }
    return deepest;
}

// How far an upright box is in cells higher than `bottom`. Sides that two blocking cells share push nobody.
Push box_in_cells(const State& s, const Body& b, float bottom) {
    Push deepest;
    const float c = cosine(b.yaw), n = sine(b.yaw), ac = size_of(c), an = size_of(n);
    const float ex = ac * b.hx + an * b.hy, ey = an * b.hx + ac * b.hy, half = 0.5f * kCell;
    const int c0 = cell_of(b.x - ex), c1 = cell_of(b.x + ex), r0 = cell_of(b.y - ey), r1 = cell_of(b.y + ey);
    for (int row = r0; row <= r1; ++row)
        for (int column = c0; column <= c1; ++column) {
            if (height_at(s, column, row) <= bottom) continue;
            const float dx = b.x - ((float)column * kCell + half), dy = b.y - ((float)row * kCell + half);
            const float ox = ex + half - size_of(dx), oy = ey + half - size_of(dy);
            if (ox <= 0.0f || oy <= 0.0f) continue;
            const float du = dx * c + dy * n, dv = dy * c - dx * n;
            const float ou = b.hx + half * (ac + an) - size_of(du), ov = b.hy + half * (ac + an) - size_of(dv);
            if (ou <= 0.0f || ov <= 0.0f) continue;
            const float sx = dx < 0.0f ? -1.0f : 1.0f, sy = dy < 0.0f ? -1.0f : 1.0f;
            const bool free_x = height_at(s, column + (int)sx, row) <= bottom;
            const bool free_y = height_at(s, column, row + (int)sy) <= bottom;
            Push push{sx, 0.0f, ox};
            if ((free_y && !free_x) || (free_x == free_y && oy < ox)) push = {0.0f, sy, oy};
            if (free_x && free_y) {  // an outer corner
                const float su = du < 0.0f ? -1.0f : 1.0f, sv = dv < 0.0f ? -1.0f : 1.0f;
                if (ou < push.depth) push = {c * su, n * su, ou};
                if (ov < push.depth) push = {-n * sv, c * sv, ov};
            }
            if (push.depth > deepest.depth) deepest = push;
        }
    return deepest;
}

Push body_in_cells(const State& s, const Body& b) {
    if (b.kind == kBox) return box_in_cells(s, b, bottom_of(b) + kLedge);
    if (b.kind == kBall) return ball_in_cells(s, {b.x, b.y, b.z, b.hx}, bottom_of(b) + kLedge);
    Push deepest;
    for (int i = 0; i < kStickBalls; ++i) {
        const Ball ball = ball_of_stick(b, i);
        const Push push = ball_in_cells(s, ball, ball.z - ball.radius + kLedge);
        if (push.depth > deepest.depth) deepest = push;
    }
    return deepest;
}

// ---- pairs: how far the first has to go to be free of the second

Push ball_from_ball(const Ball& a, const Ball& b) {
    const float dx = a.x - b.x, dy = a.y - b.y, dz = a.z - b.z, r = a.radius + b.radius;
    const float r2 = r * r - dz * dz, d2 = dx * dx + dy * dy;
    if (r2 <= 0.0f || d2 >= r2) return {};
    const float d = root(d2);
    return d > 1e-5f ? Push{dx / d, dy / d, root(r2) - d} : Push{1.0f, 0.0f, root(r2)};
}

// A ball against an upright box; only beside it, as what is above stands on it.
Push ball_from_box(const Ball& a, const Body& b) {
    const float dz = most(most(bottom_of(b) - a.z, a.z - top_of(b)), 0.0f), r2 = a.radius * a.radius - dz * dz;
    if (r2 <= 0.0f) return {};
    const float c = cosine(b.yaw), n = sine(b.yaw), dx = a.x - b.x, dy = a.y - b.y;
    const float u = dx * c + dy * n, v = dy * c - dx * n;
    const float pu = u - within(u, -b.hx, b.hx), pv = v - within(v, -b.hy, b.hy), d2 = pu * pu + pv * pv;
    if (d2 >= r2) return {};
    float nu, nv, depth;
    if (d2 > 1e-10f) {
        const float d = root(d2);
        nu = pu / d, nv = pv / d, depth = root(r2) - d;
    } else {
        if (a.z > top_of(b)) return {};  // its lowest point is over the box: carried
        const float ou = b.hx - size_of(u), ov = b.hy - size_of(v);
        nu = ou < ov ? (u < 0.0f ? -1.0f : 1.0f) : 0.0f;
        nv = ou < ov ? 0.0f : (v < 0.0f ? -1.0f : 1.0f);
        depth = least(ou, ov) + root(r2);
    }
    return {nu * c - nv * n, nu * n + nv * c, depth};
}

Push box_from_box(const Body& a, const Body& b) {
    const float ca = cosine(a.yaw), na = sine(a.yaw), cb = cosine(b.yaw), nb = sine(b.yaw);
    const float dx = a.x - b.x, dy = a.y - b.y;
    const float c = size_of(ca * cb + na * nb), n = size_of(ca * nb - na * cb);
    const float axes[4][2] = {{ca, na}, {-na, ca}, {cb, nb}, {-nb, cb}};
    const float reach[4] = {a.hx + b.hx * c + b.hy * n, a.hy + b.hx * n + b.hy * c, b.hx + a.hx * c + a.hy * n,
                            b.hy + a.hx * n + a.hy * c};
    Push push{0.0f, 0.0f, 1e9f};
    for (int i = 0; i < 4; ++i) {
        const float d = dx * axes[i][0] + dy * axes[i][1], depth = reach[i] - size_of(d);
        if (depth <= 0.0f) return {};
        if (depth < push.depth) {
            const float sign = d < 0.0f ? -1.0f : 1.0f;
            push = {axes[i][0] * sign, axes[i][1] * sign, depth};
        }
    }
    return push;
}

inline Push turned(Push push) { return {-push.nx, -push.ny, push.depth}; }

Push ball_from_body(const Ball& a, const Body& b) {
    return b.kind == kBox ? ball_from_box(a, b) : ball_from_ball(a, {b.x, b.y, b.z, b.hx});
}

Push body_from_body(const Body& a, const Body& b) {
    if (a.kind == kStick && b.kind == kStick) return {};
    if (a.kind == kStick || b.kind == kStick) {
        const Body &stick = a.kind == kStick ? a : b, &other = a.kind == kStick ? b : a;
        Push deepest;
        for (int i = 0; i < kStickBalls; ++i) {
            const Push push = ball_from_body(ball_of_stick(stick, i), other);
            if (push.depth > deepest.depth) deepest = push;
        }
        return a.kind == kStick ? deepest : turned(deepest);
    }
    if (least(top_of(a), top_of(b)) - most(bottom_of(a), bottom_of(b)) < kOverlap) return {};
    if (a.kind == kBall) return ball_from_body({a.x, a.y, a.z, a.hx}, b);
    if (b.kind == kBall) return turned(ball_from_box({b.x, b.y, b.z, b.hx}, a));
    return box_from_box(a, b);
}

inline bool are_near(const Body& a, const Body& b, float margin) {
    const float dx = a.x - b.x, dy = a.y - b.y, most_r = a.hx + a.hy + b.hx + b.hy + margin;
    if (size_of(dx) > most_r || size_of(dy) > most_r) return false;
    const float r = reach_of(a) + reach_of(b) + margin;
    return dx * dx + dy * dy < r * r;
}

// Bodies that a body can meet within a substep; a superset, looked up once and used for all that follows.
struct Near {
    int num = 0;
    uint8_t bodies[kMaxBodies];
};

Near near_to(const State& s, int index) {
    const Body& b = s.bodies[index];
    const float reach = b.hx + b.hy + 0.5f;
    Near near;
    for (int j = 0; j < s.num_bodies; ++j) {
        const Body& other = s.bodies[j];
        const float r = reach + other.hx + other.hy;
        near.bodies[near.num] = (uint8_t)j;
        near.num += (size_of(b.x - other.x) < r) & (size_of(b.y - other.y) < r) & (j != index) & is_alive(other);
    }
    return near;
}

// ---- what carries a body

inline bool is_over(const Body& b, float x, float y) {
    const float c = cosine(b.yaw), n = sine(b.yaw), dx = x - b.x, dy = y - b.y;
    return size_of(dx * c + dy * n) <= b.hx && size_of(dy * c - dx * n) <= b.hy;
}

// The height on which a body stands or will land: below its centre or, for a box, one of four points half-way out.
float support_of(const State& s, int index, const Near& near) {
    const Body& b = s.bodies[index];
    const float c = cosine(b.yaw), n = sine(b.yaw), bottom = bottom_of(b), u = 0.5f * b.hx, v = 0.5f * b.hy;
    const float offsets[5][2] = {{0, 0}, {u, v}, {-u, v}, {u, -v}, {-u, -v}};
    const int num = b.kind == kBall ? 1 : 5;
    float best = -100.0f;
    for (int i = 0; i < num; ++i) {
        const float x = b.x + c * offsets[i][0] - n * offsets[i][1], y = b.y + n * offsets[i][0] + c * offsets[i][1];
        const float h = height_at(s, cell_of(x), cell_of(y));
        if (h <= bottom + kOverlap) best = most(best, h);
    }
    for (int k = 0; k < near.num; ++k) {
        const Body& other = s.bodies[near.bodies[k]];
        if (other.kind != kBox || !is_alive(other)) continue;
        const float top = top_of(other);
        if (top > bottom + kOverlap || top <= best || !are_near(b, other, 0.0f)) continue;
        for (int i = 0; i < num; ++i) {
            const float x = b.x + c * offsets[i][0] - n * offsets[i][1], y = b.y + n * offsets[i][0] + c * offsets[i][1];
            if (is_over(other, x, y)) {
                best = top;
                break;
            }
        }
    }
    return best;
}

}  // namespace
}  // namespace rooms
}  // namespace softcount
