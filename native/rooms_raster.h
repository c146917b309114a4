// A z-buffer of inverse depths and face numbers. Each convex face writes 1/z = a·x + b·y + c row by row, from its
// plane; each ball writes its exact 1/z. Every pixel is shaded once, afterwards, in runs of one face (rooms_shade.h).
#pragma once

#include <cstring>

#include "rooms_agent.h"

namespace softcount {
namespace rooms {
namespace {

// Vectors as wide as the instruction set has them: GCC takes selections between wider ones apart, lane by lane.
#if defined(__AVX2__)
constexpr int kLanes = 8;
#define ROOMS_LANES {0, 1, 2, 3, 4, 5, 6, 7}
#define ROOMS_SPLAT(x) {x, x, x, x, x, x, x, x}
#else
constexpr int kLanes = 4;
#define ROOMS_LANES {0, 1, 2, 3}
#define ROOMS_SPLAT(x) {x, x, x, x}
#endif
constexpr int kMaxFaces = 2048, kMaxCorners = 12;
constexpr float kNearPlane = 0.04f;

typedef float Floats __attribute__((vector_size(4 * kLanes)));
typedef int32_t Ints __attribute__((vector_size(4 * kLanes)));
typedef long long Quads __attribute__((vector_size(4 * kLanes)));

inline Floats splat(float x) { return Floats ROOMS_SPLAT(x); }
inline Ints splat(int32_t x) { return Ints ROOMS_SPLAT(x); }
inline Floats lanes_from(float x) { return splat(x) + Floats ROOMS_LANES; }
inline Ints lanes_from(int32_t x) { return splat(x) + Ints ROOMS_LANES; }

// Whether a comparison holds in any lane.
inline bool is_any(Ints is_true) {
#if defined(__AVX2__)
    return !__builtin_ia32_ptestz256((Quads)is_true, (Quads)is_true);
#else
    const Quads halves = (Quads)is_true;
    return (halves[0] | halves[1]) != 0;
#endif
}

template <typename V, typename T>
inline V load(const T* p) {
    V v;
    std::memcpy(&v, p, sizeof v);
    return v;
}

template <typename V, typename T>
inline void store(T* p, V v) {
    std::memcpy(p, &v, sizeof v);
}

enum Surface : int32_t { kPlain, kBricks, kRound, kFruit };

// What shading needs of a face. Texture coordinates of a plane: u = u0 + (ux·x + uy·y + uc) / (1/z).
struct Face {
    Surface surface;
    float colour[3];
    float a, b, c;  // 1/z of a plane
    float u0, ux, uy, uc, v0, vx, vy, vc;
    float shift, checker, noise;
    float from[3], inverse_radius;  // of a ball: eye minus centre
};

struct Canvas {
    int width, height, stride;
    float focal;
    Gaze gaze;
    int num_faces;
    float* depth;     // [height][stride], inverse
    int32_t* owner;   // [height][stride], face or -1
    uint32_t* row;    // [stride], packed colours of a row
    float *left, *right;  // [height], spans of the face being drawn
    Face* faces;
};

inline float dot(const float* a, const float* b) { return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]; }

// A linear function of the pixel: direction·w for the ray through pixel (x, y).
inline void along_rays(const Canvas& canvas, const float* w, float* x, float* y, float* c) {
    const Gaze& g = canvas.gaze;
    const float f = dot(w, g.forward), r = dot(w, g.right) / canvas.focal, u = -dot(w, g.up) / canvas.focal;
    *x = r, *y = u;
    *c = f + r * (0.5f - 0.5f * (float)canvas.width) + u * (0.5f - 0.5f * (float)canvas.height);
}

inline void to_camera(const Canvas& canvas, const float* p, float* out) {
    const Gaze& g = canvas.gaze;
    const float d[3] = {p[0] - g.eye[0], p[1] - g.eye[1], p[2] - g.eye[2]};
    out[0] = dot(d, g.right), out[1] = dot(d, g.up), out[2] = dot(d, g.forward);
}

// Writes the spans of a convex polygon in screen coordinates; returns its rows.
void find_spans(const Canvas& canvas, const float (*points)[2], int num, int* first, int* last) {
    float low = 1e9f, high = -1e9f;
    for (int i = 0; i < num; ++i) low = least(low, points[i][1]), high = most(high, points[i][1]);
    const float bottom = (float)canvas.height;
    *first = (int)(within(low - 0.5f, -1.0f, bottom) + 1.0f);
    *last = (int)(within(high - 0.5f, -1.0f, bottom - 1.0f) + 1.0f);  // rows from first to below last
    for (int y = *first; y < *last; ++y) canvas.left[y] = 1e9f, canvas.right[y] = -1e9f;
    for (int i = 0; i < num; ++i) {
        const float *p = points[i], *q = points[i + 1 == num ? 0 : i + 1];
        if (p[1] > q[1]) {  // the same edge gives the same bits from both of its sides
            const float* swap = p;
            p = q, q = swap;
        }
        if (p[1] == q[1]) continue;
        const float slope = (q[0] - p[0]) / (q[1] - p[1]);
        const int y0 = (int)(within(p[1] - 0.5f, -1.0f, bottom) + 1.0f);
        const int y1 = (int)(within(q[1] - 0.5f, -1.0f, bottom - 1.0f) + 1.0f);
        for (int y = y0; y < y1; ++y) {
            const float x = p[0] + ((float)y + 0.5f - p[1]) * slope;
            canvas.left[y] = least(canvas.left[y], x), canvas.right[y] = most(canvas.right[y], x);
        }
    }
}

// Draws a convex polygon of the world with the plane n·p = d; false where nothing of it can be seen.
bool draw_polygon(Canvas& canvas, const float (*corners)[3], int num, const float* normal, float d) {
    const float gap = d - dot(normal, canvas.gaze.eye);
    if (gap >= -1e-4f || canvas.num_faces == kMaxFaces) return false;
    float seen[kMaxCorners][3], kept[kMaxCorners + 1][3], points[kMaxCorners + 1][2];
    const float half_x = 0.5f * (float)canvas.width / canvas.focal, half_y = 0.5f * (float)canvas.height / canvas.focal;
    int outside = 31;
    for (int i = 0; i < num; ++i) {
        to_camera(canvas, corners[i], seen[i]);
        const float x = seen[i][0], y = seen[i][1], z = seen[i][2], wx = z * half_x, wy = z * half_y;
        outside &= (x > wx ? 1 : 0) | (x < -wx ? 2 : 0) | (y > wy ? 4 : 0) | (y < -wy ? 8 : 0) | (z < kNearPlane ? 16 : 0);
    }
    if (outside) return false;
    int num_kept = 0;
    for (int i = 0; i < num; ++i) {
        const float *p = seen[i], *q = seen[i + 1 == num ? 0 : i + 1];
        if (p[2] >= kNearPlane) std::memcpy(kept[num_kept++], p, sizeof(float) * 3);
        if ((p[2] >= kNearPlane) != (q[2] >= kNearPlane)) {
            const float t = (kNearPlane - p[2]) / (q[2] - p[2]);
            float* cut = kept[num_kept++];
            cut[0] = p[0] + t * (q[0] - p[0]), cut[1] = p[1] + t * (q[1] - p[1]), cut[2] = kNearPlane;
        }
    }
    if (num_kept < 3) return false;
    for (int i = 0; i < num_kept; ++i) {
        const float scale = canvas.focal / kept[i][2];
        points[i][0] = 0.5f * (float)canvas.width + kept[i][0] * scale;
        points[i][1] = 0.5f * (float)canvas.height - kept[i][1] * scale;
    }
    Face& face = canvas.faces[canvas.num_faces];
    along_rays(canvas, normal, &face.a, &face.b, &face.c);
    face.a /= gap, face.b /= gap, face.c /= gap;
    int first, last;
    find_spans(canvas, points, num_kept, &first, &last);
    const Ints id = splat((int32_t)canvas.num_faces);
    const float end = (float)canvas.width;
    for (int y = first; y < last; ++y) {
        // a hundredth of a pixel wider: no cracks where an edge meets two
        const int x0 = (int)(within(canvas.left[y] - 0.51f, -1.0f, end) + 1.0f);
        const int x1 = (int)(within(canvas.right[y] - 0.49f, -1.0f, end - 1.0f) + 1.0f);
        float* depth = canvas.depth + y * canvas.stride;
        int32_t* owner = canvas.owner + y * canvas.stride;
        const Floats slope = splat(face.a), base = splat(face.b * (float)y + face.c);
        for (int x = x0; x < x1; x += kLanes) {
            const Floats here = slope * lanes_from((float)x) + base, there = load<Floats>(depth + x);
            const Ints is_won = (here > there) & (lanes_from((int32_t)x) < splat((int32_t)x1));
            store(depth + x, is_won ? here : there);
            store(owner + x, is_won ? id : load<Ints>(owner + x));
        }
    }
    ++canvas.num_faces;
    return true;
}

struct Patch {
    int x0, x1, y0, y1;
};

// A rectangle of pixels that holds a ball around camera point `p`, which is before the near plane.
Patch patch_of(const Canvas& canvas, const float* p, float r) {
    const float near = canvas.focal / (p[2] - r), far = canvas.focal / (p[2] + r);
    const float cx = 0.5f * (float)canvas.width, cy = 0.5f * (float)canvas.height;
    const float w = (float)canvas.width, h = (float)canvas.height;
    const float xl = p[0] - r, xh = p[0] + r, yl = p[1] - r, yh = p[1] + r;
    return {(int)within(cx + xl * (xl < 0.0f ? near : far) - 1.0f, 0.0f, w),
            (int)within(cx + xh * (xh > 0.0f ? near : far) + 2.0f, 0.0f, w),
            (int)within(cy - yh * (yh > 0.0f ? near : far) - 1.0f, 0.0f, h),
            (int)within(cy - yl * (yl < 0.0f ? near : far) + 2.0f, 0.0f, h)};
}

// Whether all that was drawn in a patch is nearer than an inverse depth.
bool is_covered(const Canvas& canvas, const Patch& patch, float depth) {
    for (int y = patch.y0; y < patch.y1; ++y) {
        const float* row = canvas.depth + y * canvas.stride;
        for (int x = patch.x0; x < patch.x1; x += kLanes)
            if (is_any((load<Floats>(row + x) <= splat(depth)) & (lanes_from(x) < splat(patch.x1)))) return false;
    }
    return true;
}

// Draws a ball; false where it cannot be seen.
bool draw_ball(Canvas& canvas, const Ball& ball) {
    const float centre[3] = {ball.x, ball.y, ball.z}, r = ball.radius;
    float p[3];
    to_camera(canvas, centre, p);
    if (p[2] < r + kNearPlane || canvas.num_faces == kMaxFaces) return false;
    const float cx = 0.5f * (float)canvas.width, cy = 0.5f * (float)canvas.height;
    const Patch patch = patch_of(canvas, p, r);
    const int x0 = patch.x0, x1 = patch.x1, y0 = patch.y0, y1 = patch.y1;
    if (x0 >= x1 || y0 >= y1) return false;
    // |t·D - p|² = r² in camera coordinates, D = (dx, dy, 1): t = (D·p + sqrt((D·p)² - D²(p² - r²))) / …, nearest root
    const float k = dot(p, p) - r * r, inverse = 1.0f / canvas.focal;
    const Ints id = splat((int32_t)canvas.num_faces);
    for (int y = y0; y < y1; ++y) {
        const float dy = (cy - 0.5f - (float)y) * inverse;
        float* depth = canvas.depth + y * canvas.stride;
        int32_t* owner = canvas.owner + y * canvas.stride;
        for (int x = x0; x < x1; x += kLanes) {
            const Floats dx = (lanes_from((float)x) - splat(cx - 0.5f)) * splat(inverse);
            const Floats along = dx * splat(p[0]) + splat(dy * p[1] + p[2]), d2 = dx * dx + splat(dy * dy + 1.0f);
            Floats inside = along * along - d2 * splat(k);
            const Ints is_hit = (inside > splat(0.0f)) & (lanes_from((int32_t)x) < splat((int32_t)x1));
            inside = inside > splat(0.0f) ? inside : splat(0.0f);
            Floats rooted;
            for (int i = 0; i < kLanes; ++i) rooted[i] = root(inside[i]);
            const Floats here = (along + rooted) / splat(k), there = load<Floats>(depth + x);  // 1/t, the larger root
            const Ints is_won = is_hit & (here > there);
            store(depth + x, is_won ? here : there);
            store(owner + x, is_won ? id : load<Ints>(owner + x));
        }
    }
    Face& face = canvas.faces[canvas.num_faces++];
    for (int i = 0; i < 3; ++i) face.from[i] = canvas.gaze.eye[i] - centre[i];
    face.inverse_radius = 1.0f / r;
    return true;
}

}  // namespace
}  // namespace rooms
}  // namespace softcount
