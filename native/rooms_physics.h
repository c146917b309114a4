// How bodies move: gravity, friction, contacts, sleep. Nothing moves further than a small piece between two looks at
// the cells, and what would end inside one stays where it was.
#pragma once

#include "rooms_contact.h"

namespace softcount {
namespace rooms {
namespace {

constexpr float kStep = 1.0f / 60.0f;  // a substep; a tick has two
constexpr float kGravity = 9.81f;
constexpr float kFastest = 12.0f;     // metres per second: 0.2 m a substep, less than half a cell
constexpr float kPiece = 0.08f;
constexpr float kHeavy = 5.0f;        // kilograms: what is heavier is pushed with effort
constexpr float kHeldMass = 20.0f;    // how firm a hand is
constexpr float kFree = 0.002f;       // less than this deep counts as free
constexpr int kDrowsy = 16;           // substeps at rest before sleep

inline void wake(Body& b) {
    b.flags &= ~kAsleep;
    b.rest = 0;
}

// Wakes what touches a body, beside it or on it.
void wake_around(State& s, int index, const Near& near) {
    const Body& b = s.bodies[index];
    for (int k = 0; k < near.num; ++k) {
        Body& other = s.bodies[near.bodies[k]];
        if (!(other.flags & kAsleep) || !are_near(b, other, 0.03f)) continue;
        if (bottom_of(other) < top_of(b) + 0.05f && bottom_of(b) < top_of(other) + 0.05f) wake(other);
    }
}

inline void wake_around(State& s, int index) { wake_around(s, index, near_to(s, index)); }

// Moves a body sideways as far as cells let it; returns whether anything was in the way, with the last normal.
bool shift(State& s, int index, float dx, float dy, Push* last = nullptr) {
    Body& b = s.bodies[index];
    const float length = root(dx * dx + dy * dy);
    const int pieces = (int)(length / kPiece) + 1;
    const float px = dx / (float)pieces, py = dy / (float)pieces;
    bool is_hindered = false;
    for (int i = 0; i < pieces; ++i) {
        const float x = b.x, y = b.y;
        b.x += px, b.y += py;
        Push push = body_in_cells(s, b);
        for (int k = 0; k < 4 && push.depth > kFree; ++k) {
            is_hindered = true;
            if (last) *last = push;
            const float depth = least(push.depth, 2.0f * kPiece);
            b.x += push.nx * depth, b.y += push.ny * depth;
            push = body_in_cells(s, b);
        }
        if (push.depth > kFree) {
            b.x = x, b.y = y;
            return true;
        }
    }
    return is_hindered;
}

// The same, but a body that was not free before may come out slowly.
bool shift_or_free(State& s, int index, float dx, float dy, Push* last) {
    Body& b = s.bodies[index];
    const Push before = body_in_cells(s, b);
    if (before.depth <= kFree) return shift(s, index, dx, dy, last);
    const float x = b.x, y = b.y, depth = least(before.depth, 0.05f);
    b.x += before.nx * depth, b.y += before.ny * depth;
    if (body_in_cells(s, b).depth >= before.depth) b.x = x, b.y = y;
    *last = before;
    return true;
}

// Takes the velocity into a wall away, but for what bounces.
void bounce(Body& b, Push wall) {
    const float speed = b.vx * wall.nx + b.vy * wall.ny, restitution = b.kind == kBall ? 0.3f : 0.15f;
    if (speed < 0.0f) {
        b.vx -= (1.0f + restitution) * speed * wall.nx;
        b.vy -= (1.0f + restitution) * speed * wall.ny;
    }
}

void fall(State& s, int index, const Near& near) {
    Body& b = s.bodies[index];
    const float x = b.x, y = b.y, z = b.z;
    b.vz = most(b.vz - kGravity * kStep, -kFastest);
    const float support = support_of(s, index, near), bottom = bottom_of(b) + b.vz * kStep;
    const bool is_carried = bottom <= support;
    if (is_carried) {
        b.z = support + b.hz;
        b.vz = b.kind == kBall && b.vz < -0.6f ? -0.3f * b.vz : 0.0f;
        const float kept = b.kind == kBall ? 0.95f : 0.80f;
        b.vx *= kept, b.vy *= kept;
    } else {
        b.z = bottom + b.hz;
    }
    Push wall;
    if (shift_or_free(s, index, b.vx * kStep, b.vy * kStep, &wall)) bounce(b, wall);
    if (b.z < -5.0f) {
        b.flags &= ~kAlive;
        return;
    }
    const float moved = size_of(b.x - x) + size_of(b.y - y) + size_of(b.z - z);
    if (moved > 1e-4f) wake_around(s, index, near);
    b.rest = is_carried && moved < 4e-4f ? b.rest + 1 : 0;
    if (b.rest >= kDrowsy) {
        b.flags |= kAsleep;
        b.vx = b.vy = b.vz = 0.0f;
    }
}

inline float lightness(const State& s, int index) {
    const Body& b = s.bodies[index];
    if (is_fixed(b)) return 0.0f;
    return index == s.agent.held ? 1.0f / kHeldMass : 1.0f / b.mass;
}

// Parts two bodies by mass; what one cannot give way, being at a wall, the other has to.
void part(State& s, int i, int j) {
    Body &a = s.bodies[i], &b = s.bodies[j];
    const Push push = body_from_body(a, b);
    if (push.depth <= 1e-4f) return;
    float wa = lightness(s, i), wb = lightness(s, j);
    if (i == s.agent.held && b.mass > kHeavy) wb = 0.0f;  // what is held moves nothing heavy: walls stay walls
    if (j == s.agent.held && a.mass > kHeavy) wa = 0.0f;
    const float sum = wa + wb;
    if (sum == 0.0f) return;
    const float depth = least(push.depth, 2.0f * kPiece), share = depth * wa / sum;
    const float ax = a.x, ay = a.y, bx = b.x, by = b.y;
    if (share > 0.0f) shift(s, i, push.nx * share, push.ny * share);
    const float gone = (a.x - ax) * push.nx + (a.y - ay) * push.ny;
    if (wb > 0.0f && depth - gone > 1e-5f) shift(s, j, -push.nx * (depth - gone), -push.ny * (depth - gone));
    const float left = depth - gone + ((b.x - bx) * push.nx + (b.y - by) * push.ny);
    if (wa > 0.0f && left > 1e-3f) shift(s, i, push.nx * left, push.ny * left);
    const float closing = (a.vx - b.vx) * push.nx + (a.vy - b.vy) * push.ny;
    if (closing < 0.0f) {
        const float impulse = -1.15f * closing / sum;
        if (i != s.agent.held) a.vx += push.nx * impulse * wa, a.vy += push.ny * impulse * wa;
        if (j != s.agent.held) b.vx -= push.nx * impulse * wb, b.vy -= push.ny * impulse * wb;
    }
    if (push.depth > 1e-3f || closing < -0.05f) wake(a), wake(b);
}

inline bool is_moving(const Body& b) { return (b.flags & (kAlive | kAsleep)) == kAlive && !is_fixed(b); }

// One substep of everything that is awake.
void move_bodies(State& s) {
    for (int i = 0; i < s.num_bodies; ++i)
        if (i != s.agent.held && is_moving(s.bodies[i])) fall(s, i, near_to(s, i));
    for (int i = 0; i < s.num_bodies; ++i) {
        if (!is_moving(s.bodies[i])) continue;
        const Near near = near_to(s, i);
        for (int k = 0; k < near.num; ++k) {
            const int j = near.bodies[k];
            const Body& other = s.bodies[j];
            const bool is_done = j < i && is_moving(other);  // when j was looked at
            if (!is_done && are_near(s.bodies[i], other, 0.0f)) part(s, i, j);
        }
    }
}

}  // namespace
}  // namespace rooms
}  // namespace softcount
