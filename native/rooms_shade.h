// Colours: every pixel once, in runs of one face, eight at a time. A run may write beyond its end; the next one
// writes over that, so that no loop has a remainder.
#pragma once

#include "rooms_raster.h"

namespace softcount {
namespace rooms {
namespace {

inline F8 whole(F8 x) {  // floor, for what is above -4096
    const I8 truncated = __builtin_convertvector(x + splat(4096.0f), I8);
    return __builtin_convertvector(truncated - splat((int32_t)4096), F8);
}

inline F8 odd(F8 whole_number) {  // 1 for odd numbers, 0 for even ones
    const I8 n = __builtin_convertvector(whole_number, I8);
    return __builtin_convertvector(n & splat((int32_t)1), F8);
}

inline F8 at_most(F8 x, float y) { return x < splat(y) ? x : splat(y); }
inline F8 at_least(F8 x, float y) { return x > splat(y) ? x : splat(y); }

inline void paint(uint32_t* to, const float* colour, F8 light) {
    const I8 r = __builtin_convertvector(at_most(splat(colour[0]) * light, 255.0f), I8);
    const I8 g = __builtin_convertvector(at_most(splat(colour[1]) * light, 255.0f), I8);
    const I8 b = __builtin_convertvector(at_most(splat(colour[2]) * light, 255.0f), I8);
    store(to, r | (g << 8) | (b << 16));
}

void shade_bricks(const Canvas& canvas, const Face& face, int x0, int x1, int y, const float* depth) {
    const F8 ux = splat(face.ux), uc = splat(face.uy * (float)y + face.uc), u0 = splat(face.u0);
    const F8 vx = splat(face.vx), vc = splat(face.vy * (float)y + face.vc), v0 = splat(face.v0);
    for (int x = x0; x < x1; x += kLanes) {
        const F8 near = load<F8>(depth + x), far = splat(1.0f) / near, at = lanes_from((float)x);
        const F8 v = v0 + (vx * at + vc) * far, row = whole(v), is_odd = odd(row);
        const F8 u = u0 + (ux * at + uc) * far + splat(face.shift) * is_odd, column = whole(u);
        const F8 mixed = column * splat(0.754877666f) + row * splat(0.569840291f), chance = mixed - whole(mixed);
        const F8 sign = odd(column + row) - splat(0.5f);
        const F8 fade = at_most(near * splat(3.5f), 1.0f);
        paint(canvas.row + x, face.colour,
              splat(1.0f) + fade * (splat(face.checker) * sign + splat(face.noise) * (chance - splat(0.5f))));
    }
}

void shade_round(const Canvas& canvas, const Face& face, int x0, int x1, int y, const float* depth) {
    const Gaze& g = canvas.gaze;
    const float inverse = 1.0f / canvas.focal, dy = (0.5f * (float)canvas.height - 0.5f - (float)y) * inverse;
    float base[3];
    for (int k = 0; k < 3; ++k) base[k] = g.forward[k] + dy * g.up[k];
    for (int x = x0; x < x1; x += kLanes) {
        const F8 dx = (lanes_from((float)x) - splat(0.5f * (float)canvas.width - 0.5f)) * splat(inverse);
        const F8 t = splat(1.0f) / load<F8>(depth + x), scale = splat(face.inverse_radius);
        F8 normal[3];
        for (int k = 0; k < 3; ++k)
            normal[k] = (splat(face.from[k]) + (splat(base[k]) + dx * splat(g.right[k])) * t) * scale;
        F8 light = splat(0.68f) + splat(0.14f) * normal[0] + splat(0.08f) * normal[1] + splat(0.28f) * normal[2];
        if (face.surface == kFruit) {
            light = normal[2] > splat(0.86f) ? splat(0.25f) : light;  // the stalk's hollow
        } else {
            light += splat(0.22f) * (odd(whole(normal[2] * splat(2.5f) + splat(0.5f))) - splat(0.5f));
        }
        paint(canvas.row + x, face.colour, at_least(light, 0.1f));
    }
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
            int end = x + 1;
            while (end < canvas.width && owner[end] == id) ++end;
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
        uint8_t* to = image + (int64_t)y * canvas.width * 3;
        for (int x = 0; x + 1 < canvas.width; ++x) std::memcpy(to + 3 * x, canvas.row + x, 4);
        std::memcpy(to + 3 * (canvas.width - 1), canvas.row + canvas.width - 1, 3);
    }
}

}  // namespace
}  // namespace rooms
}  // namespace softcount
