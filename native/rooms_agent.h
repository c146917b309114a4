// The agent: a cylinder that walks, looks, pushes, and has one hand along its view axis.
#pragma once

#include "rooms_physics.h"

namespace softcount {
namespace rooms {
namespace {

constexpr float kRadius = 0.3f, kTall = 1.7f, kEye = 1.5f;
constexpr float kSpeed = 3.0f, kQuickness = 30.0f;  // m/s, m/s²
constexpr float kTurn = kPi, kNod = 0.5f * kPi, kSteepest = 1.2042772f;  // 180°/s, 90°/s, 69°
constexpr float kStepUp = 0.3f, kDrop = 1.5f;       // higher blocks, and so does lower: nobody falls
constexpr float kNearest = 0.7f, kReach = 2.0f, kTolerance = 0.08f;
constexpr float kThrow = 3.5f;                      // m/s: a slower hand lays down
constexpr float kGivesWay = 0.25f, kDropped = 1.2f;
constexpr float kStickRight = 0.25f, kStickBelow = 0.1f, kStickInward = 0.34906585f;  // so that it is seen: 20°

enum Action { kMove, kStrafe, kLook, kNodding, kTurnForward, kTurnRight, kTurnUp, kPushPull, kGrip };

struct Gaze {
    float eye[3], forward[3], right[3], up[3];
};

Gaze gaze_of(const Agent& a) {
    const float cy = cosine(a.yaw), sy = sine(a.yaw), cp = cosine(a.pitch), sp = sine(a.pitch);
    return {{a.x, a.y, a.z + kEye}, {cp * cy, cp * sy, sp}, {-sy, cy, 0.0f}, {-sp * cy, -sp * sy, cp}};
}

// ---- walking

inline Push agent_in_cells(const State& s) {
    const Agent& a = s.agent;
    return ball_in_cells(s, {a.x, a.y, -100.0f, kRadius}, a.z + kStepUp + 0.01f, a.z - kDrop);
}

// Moves the agent by a piece; undone where it would end in a wall.
void shift_agent(State& s, float dx, float dy) {
    Agent& a = s.agent;
    const float x = a.x, y = a.y, length = root(dx * dx + dy * dy), cut = length > 0.12f ? 0.12f / length : 1.0f;
    a.x += dx * cut, a.y += dy * cut;
    Push push = agent_in_cells(s);
    for (int k = 0; k < 4 && push.depth > 1e-4f; ++k) {
        a.x += push.nx * push.depth, a.y += push.ny * push.depth;
        push = agent_in_cells(s);
    }
    if (push.depth > 1e-3f || size_of(a.x - x) > 0.15f || size_of(a.y - y) > 0.15f) a.x = x, a.y = y;
}

// A heavy body that leans on another heavy one, or is blocked, does not move.
bool leans(const State& s, int index, float nx, float ny) {
    const Body& b = s.bodies[index];
    for (int j = 0; j < s.num_bodies; ++j) {
        const Body& other = s.bodies[j];
        if (j == index || j == s.agent.held || !is_alive(other) || !(other.mass > kHeavy || is_fixed(other))) continue;
        if (!are_near(b, other, 0.0f)) continue;
        const Push push = body_from_body(b, other);
        if (push.depth > 1e-3f && push.nx * nx + push.ny * ny < -0.3f) return true;
    }
    return false;
}

// A box is pushed along the normal of the face that is met, also at its corners.
Push along_face(const Body& b, Push push) {
    if (b.kind != kBox) return push;
    const float c = cosine(b.yaw), n = sine(b.yaw), u = push.nx * c + push.ny * n, v = push.ny * c - push.nx * n;
    if (size_of(u) >= size_of(v)) return {u < 0.0f ? -c : c, u < 0.0f ? -n : n, push.depth};
    return {v < 0.0f ? n : -n, v < 0.0f ? -c : c, push.depth};
}

// Pushes what stands in the way; what does not move holds the agent back.
void push_bodies(State& s) {
    Agent& a = s.agent;
    for (int i = 0; i < s.num_bodies; ++i) {
        Body& b = s.bodies[i];
        if (i == a.held || !is_alive(b) || b.kind == kStick) continue;  // one steps over a stick
        const float dx = b.x - a.x, dy = b.y - a.y;
        if (size_of(dx) + size_of(dy) > 2.0f * (b.hx + b.hy + kRadius)) continue;
        const float r = reach_of(b) + kRadius;
        if (dx * dx + dy * dy > r * r || top_of(b) < a.z + 0.02f || bottom_of(b) > a.z + kTall) continue;
        const float z = b.kind == kBox ? b.z : within(b.z, a.z, a.z + kTall);  // a ball rolls on the ground before the feet
        const Push push = turned(ball_from_body({a.x, a.y, z, kRadius}, b));
        if (push.depth <= 1e-4f) continue;
        const float x = b.x, y = b.y;
        if (b.flags & kPushable) {
            const float depth = least(push.depth, kPiece) * (b.mass > kHeavy ? 0.6f : 1.0f);
            const Push face = along_face(b, push);
            shift(s, i, face.nx * depth, face.ny * depth);
            if (b.mass > kHeavy && leans(s, i, face.nx, face.ny)) b.x = x, b.y = y;
            if (b.x != x || b.y != y) {
                wake(b);
                wake_around(s, i);
                const float speed = a.wx * push.nx + a.wy * push.ny;
                const float own = b.vx * push.nx + b.vy * push.ny;
                if (b.mass <= kHeavy && speed > own) {
                    b.vx += push.nx * (speed - own), b.vy += push.ny * (speed - own);
                }
            }
        }
        const float left = push.depth - ((b.x - x) * push.nx + (b.y - y) * push.ny);
        if (left > 1e-4f) shift_agent(s, -push.nx * left, -push.ny * left);
    }
}

void walk(State& s, const float* actions) {
    Agent& a = s.agent;
    const float cy = cosine(a.yaw), sy = sine(a.yaw);
    float forward = actions[kMove], right = actions[kStrafe];
    const float length = root(forward * forward + right * right);
    if (length > 1.0f) forward /= length, right /= length;
    float dx = kSpeed * (cy * forward - sy * right) - a.wx, dy = kSpeed * (sy * forward + cy * right) - a.wy;
    const float change = root(dx * dx + dy * dy), most_change = kQuickness * kStep;
    if (change > most_change) dx *= most_change / change, dy *= most_change / change;
    a.wx += dx, a.wy += dy;
    const float x = a.x, y = a.y, z = a.z;
    shift_agent(s, a.wx * kStep, a.wy * kStep);
    push_bodies(s);
    a.vx = within((a.x - x) / kStep, -kSpeed, kSpeed), a.vy = within((a.y - y) / kStep, -kSpeed, kSpeed);

    float ground = -100.0f;  // the highest cell under the cylinder that can be stepped on
    for (int row = cell_of(a.y - kRadius); row <= cell_of(a.y + kRadius); ++row)
        for (int column = cell_of(a.x - kRadius); column <= cell_of(a.x + kRadius); ++column) {
            const float h = height_at(s, column, row), x0 = (float)column * kCell, y0 = (float)row * kCell;
            const float ux = a.x - within(a.x, x0, x0 + kCell), uy = a.y - within(a.y, y0, y0 + kCell);
            if (h <= a.z + kStepUp + 0.01f && ux * ux + uy * uy < kRadius * kRadius) ground = most(ground, h);
        }
    if (ground < -50.0f) ground = a.z;
    if (ground >= a.z) {
        a.z = least(ground, a.z + 0.1f);
        a.vz = 0.0f;
    } else {
        a.vz = most(a.vz - kGravity * kStep, -kFastest);
        a.z = most(ground, a.z + a.vz * kStep);
    }
    if (a.z == z) a.vz = 0.0f;
}

// ---- the hand

float ray_to_box(const float* eye, const float* d, const Body& b) {
    const float c = cosine(b.yaw), n = sine(b.yaw), x = eye[0] - b.x, y = eye[1] - b.y;
    const float from[3] = {x * c + y * n, y * c - x * n, eye[2] - b.z};
    const float to[3] = {d[0] * c + d[1] * n, d[1] * c - d[0] * n, d[2]};
    const float half[3] = {b.hx + kTolerance, b.hy + kTolerance, b.hz + kTolerance};
    float enter = 0.0f, leave = 1e9f;
    for (int k = 0; k < 3; ++k) {
        if (size_of(to[k]) < 1e-6f) {
            if (size_of(from[k]) > half[k]) return 1e9f;
            continue;
        }
        const float t0 = (-half[k] - from[k]) / to[k], t1 = (half[k] - from[k]) / to[k];
        enter = most(enter, least(t0, t1)), leave = least(leave, most(t0, t1));
    }
    return enter <= leave ? enter : 1e9f;
}

float ray_to_ball(const float* eye, const float* d, const Ball& ball) {
    const float x = ball.x - eye[0], y = ball.y - eye[1], z = ball.z - eye[2], r = ball.radius + kTolerance;
    const float along = x * d[0] + y * d[1] + z * d[2], inside = along * along - (x * x + y * y + z * z - r * r);
    return inside < 0.0f || along < 0.0f ? 1e9f : most(0.0f, along - root(inside));
}

float ray_to_body(const float* eye, const float* d, const Body& b) {
    if (b.kind == kBox) return ray_to_box(eye, d, b);
    if (b.kind == kBall) return ray_to_ball(eye, d, {b.x, b.y, b.z, b.hx});
    float nearest = 1e9f;
    for (int i = 0; i < kStickBalls; ++i) nearest = least(nearest, ray_to_ball(eye, d, ball_of_stick(b, i)));
    return nearest;
}

void grip(State& s) {
    Agent& a = s.agent;
    const Gaze gaze = gaze_of(a);
    float nearest = kReach;
    int found = -1;
    for (int i = 0; i < s.num_bodies; ++i) {
        if (!is_alive(s.bodies[i])) continue;
        const float t = ray_to_body(gaze.eye, gaze.forward, s.bodies[i]);
        if (t < nearest) nearest = t, found = i;
    }
    if (found < 0 || !(s.bodies[found].flags & kLiftable)) return;
    for (float t = 0.05f; t < nearest - kTolerance; t += 0.05f) {  // walls and floors are in between
        const float x = gaze.eye[0] + t * gaze.forward[0], y = gaze.eye[1] + t * gaze.forward[1];
        if (height_at(s, cell_of(x), cell_of(y)) > gaze.eye[2] + t * gaze.forward[2] + kTolerance) return;
    }
    Body& b = s.bodies[found];
    const float x = b.x - gaze.eye[0], y = b.y - gaze.eye[1], z = b.z - gaze.eye[2];
    a.held = found;
    a.hand = within(root(x * x + y * y + z * z), kNearest, kReach);
    for (int k = 0; k < kTrail; ++k) a.trail[k][0] = a.trail[k][1] = a.trail[k][2] = 0.0f;
    wake(b);
    wake_around(s, found);
}

// Lets go: the fastest motion of the last tenth of a second is thrown, a slow one lays the body down.
void release(State& s, bool is_thrown) {
    Agent& a = s.agent;
    Body& b = s.bodies[a.held];
    a.held = -1;
    a.lag = 0.0f;
    float best = -1.0f;
    const float* fastest = a.trail[0];
    for (int k = 0; k < kTrail; ++k) {
        const float* v = a.trail[k];
        const float v2 = v[0] * v[0] + v[1] * v[1] + v[2] * v[2];
        if (v2 > best) best = v2, fastest = v;
    }
    const float* last = a.trail[(a.trail_at + kTrail - 1) % kTrail];
    if (is_thrown && best > kThrow * kThrow) {
        b.vx = fastest[0], b.vy = fastest[1], b.vz = fastest[2];
    } else {
        b.vx = 0.3f * within(last[0], -kThrow, kThrow), b.vy = 0.3f * within(last[1], -kThrow, kThrow), b.vz = 0.0f;
    }
    b.pitch = 0.0f;
    wake(b);
}

// Turns the held body; undone where that would put it into a cell.
void turn_held(State& s, float yaw, float pitch) {
    Body& b = s.bodies[s.agent.held];
    const float old_yaw = b.yaw, old_pitch = b.pitch, before = body_in_cells(s, b).depth;
    b.yaw = wrapped(yaw), b.pitch = pitch;
    const Push push = body_in_cells(s, b);
    if (push.depth > most(kFree, before)) b.yaw = old_yaw, b.pitch = old_pitch;
}

// Where the hand wants the held body: on the view axis, a stick a little right of it and below.
void wanted_place(const Agent& a, const Body& b, float* want) {
    const Gaze gaze = gaze_of(a);
    const float right = b.kind == kStick ? kStickRight : 0.0f, below = b.kind == kStick ? kStickBelow : 0.0f;
    for (int k = 0; k < 3; ++k) want[k] = gaze.eye[k] + a.hand * gaze.forward[k] + right * gaze.right[k] - below * gaze.up[k];
}

// Brings the held body to where the hand wants it, at most kFastest.
void servo(State& s, const float* actions, float turned_by) {
    Agent& a = s.agent;
    Body& b = s.bodies[a.held];
    a.hand = within(a.hand + actions[kPushPull] * kStep, kNearest, kReach);
    float want[3];
    wanted_place(a, b, want);
    if (b.kind == kStick) {
        turn_held(s, a.yaw - kStickInward, a.pitch);
    } else {
        turn_held(s, b.yaw + turned_by + kPi * kStep * actions[kTurnUp], 0.0f);
    }
    const float x = b.x, y = b.y, z = b.z;
    float d[3] = {want[0] - x, want[1] - y, want[2] - z};
    const float length = root(d[0] * d[0] + d[1] * d[1] + d[2] * d[2]), most_length = kFastest * kStep;
    if (length > most_length)
        for (float& part : d) part *= most_length / length;
    if (d[2] < 0.0f && b.kind != kStick) {
        b.z = most(b.z + d[2], support_of(s, a.held, near_to(s, a.held)) + b.hz);
    } else {
        b.z += d[2];
        if (b.kind == kStick && d[2] < 0.0f && body_in_cells(s, b).depth > kFree) b.z = z;
    }
    shift(s, a.held, d[0], d[1]);
    if (b.x != x || b.y != y || b.z != z) wake_around(s, a.held);
}

// After contacts have had their say: how far the body is behind, how fast it went, and whether the hand lets go.
void feel(State& s, const float* before, float push_pull) {
    Agent& a = s.agent;
    Body& b = s.bodies[a.held];
    float lag2 = 0.0f, want[3];
    wanted_place(a, b, want);
    const float at[3] = {b.x, b.y, b.z};
    for (int k = 0; k < 3; ++k) {
        lag2 += (want[k] - at[k]) * (want[k] - at[k]);
        a.trail[a.trail_at][k] = within((at[k] - before[k]) / kStep, -kFastest, kFastest);
    }
    a.trail_at = (a.trail_at + 1) % kTrail;
    b.vx = a.trail[(a.trail_at + kTrail - 1) % kTrail][0], b.vy = a.trail[(a.trail_at + kTrail - 1) % kTrail][1];
    b.vz = 0.0f;
    a.lag = root(lag2);
    if (a.lag > kDropped) {
        release(s, false);
    } else if (a.lag > kGivesWay && push_pull <= 0.0f) {
        a.hand = most(kNearest, a.hand - 3.0f * kStep);
    }
}

// One substep of the agent, its hand and all bodies.
void substep(State& s, const float* actions) {
    Agent& a = s.agent;
    const float turn = kTurn * kStep * actions[kLook];
    a.yaw = wrapped(a.yaw + turn);
    a.pitch = within(a.pitch + kNod * kStep * actions[kNodding], -kSteepest, kSteepest);
    walk(s, actions);
    const bool is_gripping = actions[kGrip] >= 0.5f;
    if (a.held >= 0 && !is_gripping) release(s, true);
    if (a.held < 0 && is_gripping && !a.was_gripping) grip(s);
    a.was_gripping = is_gripping;
    float before[3] = {0.0f, 0.0f, 0.0f};
    if (a.held >= 0) {
        const Body& b = s.bodies[a.held];
        before[0] = b.x, before[1] = b.y, before[2] = b.z;
        servo(s, actions, turn);
    }
    move_bodies(s);
    if (a.held >= 0) feel(s, before, actions[kPushPull]);
}

}  // namespace
}  // namespace rooms
}  // namespace softcount
