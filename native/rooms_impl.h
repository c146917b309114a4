// The kernels of rooms.h: what is in view, and the table of functions. Included by rooms_avx2.cpp and
// rooms_baseline.cpp, which set ROOMS_NAME. No templates of the standard library here: a shared inline function
// compiled with AVX2 could be linked into the baseline.

#include "rooms_mesh.h"
#include "rooms_rules.h"
#include "rooms_shade.h"

namespace softcount {
namespace rooms {
namespace {

constexpr float kHalfView = 0.62486935f;  // tan 32°: a vertical field of 64°

inline float light_of(const float* n) { return 0.68f + 0.14f * n[0] + 0.08f * n[1] + 0.28f * n[2]; }

inline void tint(Face& face, const Material& m, float light, float brightest) {
    face.colour[0] = least(m.red * light, brightest), face.colour[1] = least(m.green * light, brightest);
    face.colour[2] = least(m.blue * light, brightest);
}

constexpr float kBrightestRound = 255.9f / 1.13f;  // a ball's light is at most this

// Gives the face just drawn its colour and, unless plain, its bricks along two axes of the world.
void dress(Canvas& canvas, const Material& m, const float* normal, const float* u, const float* v, const float* origin) {
    Face& face = canvas.faces[canvas.num_faces - 1];
    const float brightest = 255.9f / (1.0f + 0.5f * (m.checker + m.noise));  // the pattern stays below 256
    tint(face, m, light_of(normal) * 255.0f, brightest);
    face.surface = m.checker == 0.0f && m.noise == 0.0f ? kPlain : kBricks;
    face.shift = m.shift, face.checker = m.checker, face.noise = m.noise;
    const float e[3] = {canvas.gaze.eye[0] - origin[0], canvas.gaze.eye[1] - origin[1], canvas.gaze.eye[2] - origin[2]};
    float su[3], sv[3];
    for (int k = 0; k < 3; ++k) su[k] = u[k] * m.across, sv[k] = v[k] * m.upward;
    face.u0 = dot(e, su), face.v0 = dot(e, sv);
    along_rays(canvas, su, &face.ux, &face.uy, &face.uc);
    along_rays(canvas, sv, &face.vx, &face.vy, &face.vc);
}

void draw_quad(Canvas& canvas, const State& s, const Quad& quad) {
    const int other[3][2] = {{1, 2}, {0, 2}, {0, 1}};
    const int i = other[quad.axis][0], j = other[quad.axis][1];
    float corners[4][3], normal[3] = {0, 0, 0}, u[3] = {0, 0, 0}, v[3] = {0, 0, 0};
    const float origin[3] = {0, 0, 0};
    for (int k = 0; k < 4; ++k) {
        corners[k][quad.axis] = quad.at;
        corners[k][i] = k == 0 || k == 3 ? quad.a0 : quad.a1;
        corners[k][j] = k < 2 ? quad.b0 : quad.b1;
    }
    normal[quad.axis] = quad.sign, u[i] = 1.0f, v[j] = 1.0f;
    if (draw_polygon(canvas, corners, 4, normal, quad.sign * quad.at)) dress(canvas, s.materials[quad.material], normal, u, v, origin);
}

constexpr float kPlainBeyond = 6.0f;  // metres: there a box is ten pixels wide, and its pattern has faded

// A box whose own axes are given; its faces towards the eye.
void draw_box(Canvas& canvas, const Material& material, const float* centre, const float (*axes)[3], const float* half) {
    const float to_eye[3] = {canvas.gaze.eye[0] - centre[0], canvas.gaze.eye[1] - centre[1], canvas.gaze.eye[2] - centre[2]};
    Material surface = material;
    if (dot(to_eye, to_eye) > kPlainBeyond * kPlainBeyond) surface.checker = surface.noise = 0.0f;
    for (int k = 0; k < 3; ++k)
        for (float sign = -1.0f; sign < 2.0f; sign += 2.0f) {
            const int i = (k + 1) % 3, j = (k + 2) % 3;
            if (sign * dot(axes[k], to_eye) <= half[k]) continue;  // turned away
            float normal[3], corners[4][3];
            for (int d = 0; d < 3; ++d) {
                normal[d] = sign * axes[k][d];
                const float at = centre[d] + normal[d] * half[k], a = axes[i][d] * half[i], b = axes[j][d] * half[j];
                corners[0][d] = at - a - b, corners[1][d] = at + a - b, corners[2][d] = at + a + b, corners[3][d] = at - a + b;
            }
            const float *u = k == 0 ? axes[1] : axes[0], *v = k == 2 ? axes[1] : axes[2];
            if (draw_polygon(canvas, corners, 4, normal, dot(normal, corners[0]))) dress(canvas, surface, normal, u, v, centre);
        }
}

const float kUpright[3][3] = {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}};

// A flat octagon or rectangle just above the ground, darker than it.
void draw_shadow(Canvas& canvas, const State& s, const Body& b) {
    const int column = cell_of(b.x), row = cell_of(b.y);
    const float ground = height_at(s, column, row);
    if (ground > bottom_of(b) + 0.05f || ground < -5.0f) return;
    if ((b.flags & kAsleep) && bottom_of(b) > ground + 0.05f) return;  // it stands on another body
    const float c = cosine(b.yaw), n = sine(b.yaw), z = ground + 0.008f, up[3] = {0, 0, 1};
    float corners[8][3];
    int num = 4;
    if (b.kind == kBall) {
        num = 8;
        for (int k = 0; k < 8; ++k) {
            const float angle = 0.25f * kPi * (float)k;
            corners[k][0] = b.x + 0.9f * b.hx * cosine(angle), corners[k][1] = b.y + 0.9f * b.hx * sine(angle), corners[k][2] = z;
        }
    } else {
        const float grown = b.kind == kBox ? 0.05f : 0.02f, hx = b.hx + grown, hy = (b.kind == kBox ? b.hy : b.hz) + grown;
        const float at[4][2] = {{-hx, -hy}, {hx, -hy}, {hx, hy}, {-hx, hy}};
        for (int k = 0; k < 4; ++k) {
            corners[k][0] = b.x + c * at[k][0] - n * at[k][1], corners[k][1] = b.y + n * at[k][0] + c * at[k][1];
            corners[k][2] = z;
        }
    }
    if (!draw_polygon(canvas, corners, num, up, z)) return;
    Material dark = s.materials[s.tops[row * kSide + column]];
    dark.red *= 0.5f, dark.green *= 0.5f, dark.blue *= 0.5f, dark.checker = dark.noise = 0.0f;
    dress(canvas, dark, up, kUpright[0], kUpright[1], kUpright[2]);
}

void draw_body(Canvas& canvas, const State& s, const Body& b) {
    const float centre[3] = {b.x, b.y, b.z}, c = cosine(b.yaw), n = sine(b.yaw);
    const Material& material = s.materials[b.material];
    float p[3];
    to_camera(canvas, centre, p);
    const float r = b.kind == kBox ? reach_of(b) + b.hz : b.hx, half_x = 0.5f * (float)canvas.width / canvas.focal;
    if (p[2] < -r || size_of(p[0]) > half_x * p[2] + 2.0f * r + 0.2f) return;
    if (p[2] > r + 0.1f && is_covered(canvas, patch_of(canvas, p, r + 0.1f), 1.0f / (p[2] - r - 0.1f))) return;
    draw_shadow(canvas, s, b);
    if (b.kind == kBall) {
        if (!draw_ball(canvas, {b.x, b.y, b.z, b.hx})) return;
        Face& face = canvas.faces[canvas.num_faces - 1];
        face.surface = kRound;
        tint(face, material, 255.0f, kBrightestRound);
    } else {
        const float cp = cosine(b.pitch), sp = sine(b.pitch), half[3] = {b.hx, b.kind == kBox ? b.hy : b.hz, b.hz};
        const float axes[3][3] = {{cp * c, cp * n, sp}, {-n, c, 0.0f}, {-sp * c, -sp * n, cp}};
        draw_box(canvas, material, centre, axes, half);
    }
}

// Draws the nearest first: of a heap of bodies most are hidden by others.
void draw_bodies(Canvas& canvas, const State& s) {
    int order[kMaxBodies], num = 0;
    float far2[kMaxBodies];
    for (int i = 0; i < s.num_bodies; ++i) {
        const Body& b = s.bodies[i];
        if (!is_alive(b)) continue;
        const float d[3] = {b.x - canvas.gaze.eye[0], b.y - canvas.gaze.eye[1], b.z - canvas.gaze.eye[2]};
        far2[i] = dot(d, d);
        int k = num++;
        for (; k > 0 && far2[order[k - 1]] > far2[i]; --k) order[k] = order[k - 1];
        order[k] = i;
    }
    for (int k = 0; k < num; ++k) draw_body(canvas, s, s.bodies[order[k]]);
}

void draw_mover(Canvas& canvas, const State& s, const Mover& m) {
    const float low = least(m.closed, m.open), thick = m.is_door ? m.height - low : least(0.25f, m.height - low);
    if (thick < 0.01f) return;
    const float x0 = (float)m.column0 * kCell, x1 = (float)m.column1 * kCell, y0 = (float)m.row0 * kCell, y1 = (float)m.row1 * kCell;
    const float centre[3] = {0.5f * (x0 + x1), 0.5f * (y0 + y1), m.height - 0.5f * thick};
    const float half[3] = {0.5f * (x1 - x0), 0.5f * (y1 - y0), 0.5f * thick};
    draw_box(canvas, s.materials[m.material], centre, kUpright, half);
}

void draw_sensor(Canvas& canvas, const State& s, const Sensor& sensor) {
    Material material = s.materials[sensor.material];
    if (sensor.is_on) {  // bleached: the only sign
        material.red = 0.3f * material.red + 0.7f, material.green = 0.3f * material.green + 0.7f;
        material.blue = 0.3f * material.blue + 0.7f;
    }
    const float centre[3] = {sensor.x, sensor.y, sensor.z}, half[3] = {sensor.hx, sensor.hy, sensor.hz};
    draw_box(canvas, material, centre, kUpright, half);
}

void draw_apple(Canvas& canvas, const State& s, const Apple& apple) {
    if (apple.is_eaten || !draw_ball(canvas, {apple.x, apple.y, apple.z, apple.radius})) return;
    const Material& m = s.materials[apple.material];
    Face& face = canvas.faces[canvas.num_faces - 1];
    face.surface = kFruit;
    tint(face, m, 255.0f, kBrightestRound);
}

int64_t scratch_bytes(View view) {
    const int64_t stride = view.width + kLanes;
    return stride * (view.height + 1) * 8 + stride * 4 + 2 * view.height * 4 + kMaxFaces * (int64_t)sizeof(Face) + 256;
}

void draw(const State& s, const Mesh& mesh, View view, void* scratch, uint8_t* image) {
    Canvas canvas;
    canvas.width = view.width, canvas.height = view.height, canvas.stride = view.width + kLanes;
    canvas.focal = 0.5f * (float)view.height / kHalfView;
    canvas.gaze = gaze_of(s.agent);
    canvas.num_faces = 0;
    const int64_t pixels = (int64_t)canvas.stride * (view.height + 1);
    canvas.faces = (Face*)scratch;
    canvas.depth = (float*)(canvas.faces + kMaxFaces);
    canvas.owner = (int32_t*)(canvas.depth + pixels);
    canvas.row = (uint32_t*)(canvas.owner + pixels);
    canvas.left = (float*)(canvas.row + canvas.stride);
    canvas.right = canvas.left + view.height;
    std::memset(canvas.depth, 0, sizeof(float) * (size_t)pixels);
    std::memset(canvas.owner, 0xff, sizeof(int32_t) * (size_t)pixels);
    for (int i = 0; i < mesh.num; ++i) draw_quad(canvas, s, mesh.quads[i]);
    for (int i = 0; i < s.num_movers; ++i) draw_mover(canvas, s, s.movers[i]);
    for (int i = 0; i < s.num_strips; ++i) {
        const Strip& strip = s.strips[i];
        draw_quad(canvas, s, {2, strip.material, 1.0f, strip.z + 0.01f, strip.x0, strip.x1, strip.y0, strip.y1});
    }
    draw_bodies(canvas, s);
    for (int i = 0; i < s.num_sensors; ++i) draw_sensor(canvas, s, s.sensors[i]);
    for (int i = 0; i < s.num_apples; ++i) draw_apple(canvas, s, s.apples[i]);
    shade(canvas, image);
}

}  // namespace

extern const Kernels ROOMS_NAME;
const Kernels ROOMS_NAME = {ROOMS_LABEL, advance, merge, scratch_bytes, draw};

}  // namespace rooms
}  // namespace softcount
