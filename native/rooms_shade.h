// Colours: every pixel once, in runs of one face, a vector at a time. A run may write beyond its end; the next one
// writes over that, so that no loop has a remainder.
#pragma once

#include "rooms_raster.h"

namespace softcount {
namespace rooms {
namespace {

// Bricks are counted from far below zero, so that cutting a fraction off is a floor.
constexpr float kFirstBrick = -4096.0f;

inline Ints floor_of(Floats x) { return __builtin_convertvector(x, Ints); }
inline Floats to_floats(Ints n) { return __builtin_convertvector(n, Floats); }

// `x` where a number is odd, else 0; `x` or `-x`.
inline Floats if_odd(Ints n, float x) {
    return (Floats)(((n << 31) >> 31) & (Ints)splat(x));
}
inline Floats by_parity(Ints n, float x) { return (Floats)((Ints)splat(x) ^ (n << 31)); }

inline Floats at_most(Floats x, float y) { return x < splat(y) ? x : splat(y); }
inline Floats at_least(Floats x, float y) { return x > splat(y) ? x : splat(y); }

// Writes packed colours; what `dress` made of colours keeps them below 256.
inline void paint(uint32_t* to, const float* colour, Floats light) {
    const Ints r = floor_of(splat(colour[0]) * light), g = floor_of(splat(colour[1]) * light);
    store(to, r | (g << 8) | (floor_of(splat(colour[2]) * light) << 16));
}

void shade_bricks(const Canvas& canvas, const Face& face, int x0, int x1, int y, const float* depth) {
    const Floats ux = splat(face.ux), uc = splat(face.uy * (float)y + face.uc), u0 = splat(face.u0 - kFirstBrick);
    const Floats vx = splat(face.vx), vc = splat(face.vy * (float)y + face.vc), v0 = splat(face.v0 - kFirstBrick);
    const float checker = 0.5f * face.checker;
    for (int x = x0; x < x1; x += kLanes) {
        const Floats near = load<Floats>(depth + x), far = splat(1.0f) / near, at = lanes_from((float)x);
        const Ints row = floor_of(v0 + (vx * at + vc) * far);
        const Ints column = floor_of(u0 + (ux * at + uc) * far + if_odd(row, face.shift));
        const Floats mixed = to_floats(column) * splat(0.754877666f) + to_floats(row) * splat(0.569840291f);
        const Floats chance = mixed - to_floats(floor_of(mixed)) - splat(0.5f);
        const Floats fade = at_most(near * splat(3.5f), 1.0f);
        paint(canvas.row + x, face.colour,
              splat(1.0f) + fade * (by_parity(column + row, checker) + splat(face.noise) * chance));
    }
}

void shade_round(const Canvas& canvas, const Face& face, int x0, int x1, int y, const float* depth) {
    const Gaze& g = canvas.gaze;
    const float inverse = 1.0f / canvas.focal, dy = (0.5f * (float)canvas.height - 0.5f - (float)y) * inverse;
    float base[3];
    for (int k = 0; k < 3; ++k) base[k] = g.forward[k] + dy * g.up[k];
    for (int x = x0; x < x1; x += kLanes) {
        const Floats dx = (lanes_from((float)x) - splat(0.5f * (float)canvas.width - 0.5f)) * splat(inverse);
        const Floats t = splat(1.0f) / load<Floats>(depth + x), scale = splat(face.inverse_radius);
        Floats normal[3];
        for (int k = 0; k < 3; ++k)
            normal[k] = (splat(face.from[k]) + (splat(base[k]) + dx * splat(g.right[k])) * t) * scale;
        Floats light = splat(0.68f) + splat(0.14f) * normal[0] + splat(0.08f) * normal[1] + splat(0.28f) * normal[2];
        if (face.surface == kFruit) {
            light = normal[2] > splat(0.86f) ? splat(0.25f) : light;  // the stalk's hollow
        } else {
            light += by_parity(floor_of(normal[2] * splat(2.5f) + splat(4.5f)), 0.11f);
        }
        paint(canvas.row + x, face.colour, at_least(light, 0.1f));
    }
}

// Where the run of one face that holds pixel `x` ends.
inline int end_of_run(const int32_t* owner, int x, int width) {
    const Ints id = splat(owner[x]);
    int end = x + 1;
    while (end + kLanes <= width && !is_any(load<Ints>(owner + end) != id)) end += kLanes;
    while (end < width && owner[end] == owner[x]) ++end;
    return end;
}

// Writes a row of packed colours as bytes.
inline void pack(const uint32_t* row, int width, uint8_t* to) {
    int x = 0;
#if defined(__AVX2__)
    typedef char Bytes __attribute__((vector_size(16)));
    const Bytes without_fourth = {0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, -1, -1, -1, -1};
    for (; x + 6 <= width; x += 4) store(to + 3 * x, __builtin_ia32_pshufb128(load<Bytes>(row + x), without_fourth));
#endif
    for (; x + 1 < width; ++x) std::memcpy(to + 3 * x, row + x, 4);
    std::memcpy(to + 3 * (width - 1), row + width - 1, 3);
}

void shade(const Canvas& canvas, uint8_t* image) {
    float sky_x, sky_y, sky_c;
    const float up[3] = {0.0f, 0.0f, 1.0f};
    along_rays(canvas, up, &sky_x, &sky_y, &sky_c);
    for (int y = 0; y < canvas.height; ++y) {
        const int32_t* owner = canvas.owner + y * canvas.stride;
        const float* depth = canvas.depth + y * canvas.stride;
        for (int x = 0; x < canvas.width;) {
            const int32_t id = owner[x];
            const int end = end_of_run(owner, x, canvas.width);
            if (id < 0) {  // sky, paler towards the horizon
                const float height = within(sky_y * (float)y + sky_c, 0.0f, 1.0f), pale = 1.0f - 0.35f * height;
                const float colour[3] = {150.0f, 190.0f, 232.0f};
                for (int k = x; k < end; k += kLanes) paint(canvas.row + k, colour, splat(pale));
            } else {
                const Face& face = canvas.faces[id];
                if (face.surface == kBricks) shade_bricks(canvas, face, x, end, y, depth);
                else if (face.surface == kPlain)
                    for (int k = x; k < end; k += kLanes) paint(canvas.row + k, face.colour, splat(1.0f));
                else shade_round(canvas, face, x, end, y, depth);
            }
            x = end;
        }
        pack(canvas.row, canvas.width, image + (int64_t)y * canvas.width * 3);
    }
}

}  // namespace
}  // namespace rooms
}  // namespace softcount
