// What the world does by itself, once a tick: sensors feel, movers slide, apples are eaten, strips pay.
#pragma once

#include "rooms_agent.h"

namespace softcount {
namespace rooms {
namespace {

constexpr float kTick = 2.0f * kStep;
constexpr float kSideways = 0.06f, kVertical = 0.02f;  // how near a body must be to be felt
constexpr float kGuard = 0.35f;                        // a door does not rise this near the agent
constexpr float kShove = 0.08f;                        // metres a tick out of a closing doorway

bool is_touching(const Sensor& sensor, const Body& b) {
    const float vertical = b.kind == kBox ? kVertical : kSideways;
    if (size_of(b.z - sensor.z) > b.hz + sensor.hz + vertical) return false;
    Body box{};
    box.x = sensor.x, box.y = sensor.y, box.hx = sensor.hx + kSideways, box.hy = sensor.hy + kSideways;
    if (b.kind == kBox) return box_from_box(b, box).depth > 0.0f;
    const float dx = size_of(b.x - sensor.x) - box.hx, dy = size_of(b.y - sensor.y) - box.hy;
    const float ox = most(dx, 0.0f), oy = most(dy, 0.0f);
    return ox * ox + oy * oy < b.hx * b.hx;
}

void feel_sensors(State& s) {
    for (int i = 0; i < s.num_sensors; ++i) {
        Sensor& sensor = s.sensors[i];
        if (sensor.is_on && sensor.mode != kHold) continue;
        sensor.is_on = 0;
        for (int j = 0; j < s.num_bodies && !sensor.is_on; ++j) {
            Body& b = s.bodies[j];
            if (b.key != sensor.key || b.kind == kStick || !is_alive(b) || !is_touching(sensor, b)) continue;
            sensor.is_on = sensor.mode != kDestroy;
            if (sensor.mode == kConsume || sensor.mode == kDestroy) {
                b.flags &= ~kAlive;
                wake_around(s, j);
                if (s.agent.held == j) s.agent.held = -1, s.agent.lag = 0.0f;
            }
        }
    }
}

// Keeps a rising mover from whoever is in its way: it waits for the agent, and bodies are moved out sideways.
bool may_rise(State& s, const Mover& m, float next) {
    const float x0 = (float)m.column0 * kCell, x1 = (float)m.column1 * kCell;
    const float y0 = (float)m.row0 * kCell, y1 = (float)m.row1 * kCell;
    const Agent& a = s.agent;
    const float ax = a.x - within(a.x, x0, x1), ay = a.y - within(a.y, y0, y1), guard = kGuard + kRadius;
    bool is_clear = !m.is_door || ax * ax + ay * ay >= guard * guard;  // nobody stands where a bridge rises
    Body gap{};
    gap.x = 0.5f * (x0 + x1), gap.y = 0.5f * (y0 + y1), gap.hx = 0.5f * (x1 - x0), gap.hy = 0.5f * (y1 - y0);
    gap.z = 0.5f * (next - 10.0f), gap.hz = 0.5f * (next + 10.0f);
    const bool along_x = gap.hx < gap.hy;  // out through the thin side
    for (int i = 0; i < s.num_bodies; ++i) {
        Body& b = s.bodies[i];
        if (!is_alive(b) || is_fixed(b) || bottom_of(b) > next || body_from_body(b, gap).depth <= 0.0f) continue;
        is_clear = false;
        if (!m.is_door) continue;  // what is under a bridge is falling
        if (i == s.agent.held) release(s, false);
        const float off = along_x ? b.x - gap.x : b.y - gap.y, way = off < 0.0f ? -kShove : kShove;
        const float x = b.x, y = b.y;
        wake(b);
        shift(s, i, along_x ? way : 0.0f, along_x ? 0.0f : way);
        if (b.x == x && b.y == y) shift(s, i, along_x ? -way : 0.0f, along_x ? 0.0f : -way);
    }
    return is_clear;
}

void slide_movers(State& s) {
    for (int i = 0; i < s.num_movers; ++i) {
        Mover& m = s.movers[i];
        bool is_open = true;
        for (int k = 0; k < s.num_sensors; ++k)
            if ((m.sensors >> k & 1) && !s.sensors[k].is_on) is_open = false;
        const float goal = is_open ? m.open : m.closed;
        if (m.height == goal) continue;
        const float next = m.height < goal ? least(goal, m.height + m.speed * kTick) : most(goal, m.height - m.speed * kTick);
        if (next > m.height && !may_rise(s, m, next)) continue;
        m.height = next;
        const float h = m.is_door && next == m.closed ? kWall : next;
        for (int row = m.row0; row < m.row1; ++row)
            for (int column = m.column0; column < m.column1; ++column) s.heights[row * kSide + column] = h;
        for (int j = 0; j < s.num_bodies; ++j) {
            Body& b = s.bodies[j];
            const float x = b.x * (1.0f / kCell), y = b.y * (1.0f / kCell), near = reach_of(b) * (1.0f / kCell) + 0.2f;
            if (x + near > (float)m.column0 && x - near < (float)m.column1 && y + near > (float)m.row0 && y - near < (float)m.row1)
                wake(b);
        }
    }
}

void pay(State& s, float reward) { s.reward += reward, s.score += reward; }

void eat_and_cross(State& s) {
    const Agent& a = s.agent;
    for (int i = 0; i < s.num_strips; ++i) {
        Strip& strip = s.strips[i];
        const bool is_inside = a.x > strip.x0 && a.x < strip.x1 && a.y > strip.y0 && a.y < strip.y1;
        if (is_inside && !strip.is_inside) ++strip.num_entries, pay(s, strip.reward);
        strip.is_inside = is_inside;
    }
    for (int i = 0; i < s.num_apples; ++i) {
        Apple& apple = s.apples[i];
        const float dx = a.x - apple.x, dy = a.y - apple.y, near = kRadius + apple.radius;
        if (apple.is_eaten || dx * dx + dy * dy > near * near) continue;
        if (apple.z + apple.radius < a.z || apple.z - apple.radius > a.z + kTall) continue;
        apple.is_eaten = 1;
        pay(s, apple.reward);
        if (apple.is_terminal) s.is_over = 1;
    }
}

void advance(State& s, const float* actions, int repeat) {
    s.reward = 0.0f;
    for (int t = 0; t < repeat && !s.is_over; ++t) {
        Agent& a = s.agent;
        const float before[3] = {a.vx, a.vy, a.vz};
        substep(s, actions);
        substep(s, actions);
        const float cy = cosine(a.yaw), sy = sine(a.yaw), dx = a.vx - before[0], dy = a.vy - before[1];
        a.acceleration[0] = (cy * dy - sy * dx) / kTick;
        a.acceleration[1] = (a.vz - before[2]) / kTick;
        a.acceleration[2] = (cy * dx + sy * dy) / kTick;
        feel_sensors(s);
        slide_movers(s);
        eat_and_cross(s);
        ++s.tick;
    }
}

}  // namespace
}  // namespace rooms
}  // namespace softcount
