// What Python sees of Eight Rooms; `softcount/envs/eight_rooms/core.py` wraps it. States are bytes that Python owns;
// `layout` says where in them each number lies, and what comes in is checked before anything trusts it.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cmath>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "rooms_batch.h"

namespace nb = nanobind;
using namespace nb::literals;
using namespace softcount::rooms;

template <typename T, int Dimensions>
using Array = nb::ndarray<T, nb::ndim<Dimensions>, nb::c_contig, nb::device::cpu>;
using States = Array<uint8_t, 2>;

namespace {

[[noreturn]] void refuse(const std::string& message) { throw nb::value_error(message.c_str()); }

const Kernels& kernels_of(int rank) {
    const Kernels* found = rank < 0 ? nullptr : kernels(rank);
    if (found == nullptr) refuse("there are no kernels of rank " + std::to_string(rank));
    return *found;
}

State* states_of(const Batch& batch, const States& bytes) {
    if (int(bytes.shape(0)) != batch.num || bytes.shape(1) != sizeof(State) || reinterpret_cast<uintptr_t>(bytes.data()) % 4)
        refuse("the states are " + std::to_string(bytes.shape(0)) + " by " + std::to_string(bytes.shape(1)) +
               " bytes; expected " + std::to_string(batch.num) + " by " + std::to_string(sizeof(State)));
    return reinterpret_cast<State*>(bytes.data());
}

void check_range(const char* name, int value, int low, int high) {
    if (value < low || value > high)
        refuse(std::string(name) + " is " + std::to_string(value) + "; expected from " + std::to_string(low) + " to " +
               std::to_string(high));
}

void check_state(const State& s) {
    check_range("the version", s.version, kVersion, kVersion);
    check_range("num_bodies", s.num_bodies, 0, kMaxBodies);
    check_range("num_movers", s.num_movers, 0, kMaxMovers);
    check_range("num_sensors", s.num_sensors, 0, kMaxSensors);
    check_range("num_apples", s.num_apples, 0, kMaxApples);
    check_range("num_strips", s.num_strips, 0, kMaxStrips);
    check_range("rows", s.rows, 1, kSide);
    check_range("columns", s.columns, 1, kSide);
    check_range("held", s.agent.held, -1, s.num_bodies - 1);
    check_range("trail_at", s.agent.trail_at, 0, kTrail - 1);
    for (float x : {s.agent.x, s.agent.y, s.agent.z, s.agent.yaw, s.agent.pitch, s.agent.hand})
        if (!std::isfinite(x) || std::fabs(x) > 64.0f) refuse("the agent's pose has " + std::to_string(x) + "; expected less than 64");
    for (int i = 0; i < kSide * kSide; ++i) {
        check_range("a top's material", s.tops[i], 0, kMaxMaterials - 1);
        check_range("a side's material", s.sides[i], 0, kMaxMaterials - 1);
    }
    for (int i = 0; i < s.num_bodies; ++i) {
        const Body& b = s.bodies[i];
        check_range("a body's material", b.material, 0, kMaxMaterials - 1);
        for (float x : {b.x, b.y, b.z, b.vx, b.vy, b.vz, b.yaw, b.pitch})
            if (!std::isfinite(x) || std::fabs(x) > 100.0f)
                refuse("body " + std::to_string(i) + " has " + std::to_string(x) + "; expected less than 100");
        if (!(b.mass > 0.0f && b.hx > 0.0f && b.hy > 0.0f && b.hz > 0.0f && b.hx <= 2.0f && b.hy <= 2.0f))
            refuse("body " + std::to_string(i) + " has no size or no mass; expected both above 0, and at most 4 m across");
    }
    for (int i = 0; i < s.num_movers; ++i) {
        const Mover& m = s.movers[i];
        check_range("a mover's material", m.material, 0, kMaxMaterials - 1);
        check_range("a mover's column0", m.column0, 0, m.column1 - 1);
        check_range("a mover's column1", m.column1, 1, s.columns);
        check_range("a mover's row0", m.row0, 0, m.row1 - 1);
        check_range("a mover's row1", m.row1, 1, s.rows);
    }
    for (int i = 0; i < s.num_sensors; ++i) check_range("a sensor's material", s.sensors[i].material, 0, kMaxMaterials - 1);
    for (int i = 0; i < s.num_apples; ++i) check_range("an apple's material", s.apples[i].material, 0, kMaxMaterials - 1);
    for (int i = 0; i < s.num_strips; ++i) check_range("a strip's material", s.strips[i].material, 0, kMaxMaterials - 1);
}

void load(Batch& batch, States bytes, int slot) {
    check_range("the slot", slot, 0, batch.num - 1);
    const State& state = states_of(batch, bytes)[slot];
    check_state(state);
    std::lock_guard<std::mutex> lock(batch.mutex);
    if (!batch.load(slot, state)) refuse("the ground has more than " + std::to_string(kMaxQuads) + " rectangles");
}

void step(Batch& batch, States bytes, Array<const float, 2> actions, Array<const int32_t, 1> repeats,
          std::optional<Array<uint8_t, 4>> images) {
    State* states = states_of(batch, bytes);
    if (int(actions.shape(0)) != batch.num || actions.shape(1) != 9 || int(repeats.shape(0)) != batch.num)
        refuse("actions or repeats have the wrong shape; expected " + std::to_string(batch.num) + " rows of 9");
    if (images && (int(images->shape(0)) != batch.num || int(images->shape(1)) != batch.view.height ||
                   int(images->shape(2)) != batch.view.width || images->shape(3) != 3))
        refuse("the images have the wrong shape");
    uint8_t* pixels = images ? images->data() : nullptr;
    nb::gil_scoped_release release;
    std::lock_guard<std::mutex> lock(batch.mutex);
    batch.step(states, actions.data(), repeats.data(), pixels);
}

// ---- the layout of a State, for NumPy

nb::tuple field(const char* name, const char* format, size_t offset, nb::object shape = nb::none()) {
    return nb::make_tuple(name, format, offset, shape);
}

#define FIELD(Struct, name, format) field(#name, format, offsetof(Struct, name))
#define FIELDS(Struct, name, format, ...) field(#name, format, offsetof(Struct, name), nb::make_tuple(__VA_ARGS__))

nb::dict record(size_t size, nb::list fields) {
    nb::dict out;
    out["size"] = size;
    out["fields"] = fields;
    return out;
}

template <typename... Parts>
nb::list list_of(Parts... parts) {
    nb::list out;
    (out.append(parts), ...);
    return out;
}

nb::dict layout() {
    nb::dict out;
    out["Material"] = record(
        sizeof(Material),
        list_of(FIELD(Material, red, "f4"), FIELD(Material, green, "f4"), FIELD(Material, blue, "f4"),
                FIELD(Material, across, "f4"), FIELD(Material, upward, "f4"), FIELD(Material, shift, "f4"),
                FIELD(Material, checker, "f4"), FIELD(Material, noise, "f4")));
    out["Body"] = record(
        sizeof(Body),
        list_of(FIELD(Body, kind, "i4"), FIELD(Body, flags, "i4"), FIELD(Body, key, "i4"), FIELD(Body, material, "i4"),
                FIELD(Body, mass, "f4"), FIELD(Body, hx, "f4"), FIELD(Body, hy, "f4"), FIELD(Body, hz, "f4"),
                FIELD(Body, x, "f4"), FIELD(Body, y, "f4"), FIELD(Body, z, "f4"), FIELD(Body, vx, "f4"),
                FIELD(Body, vy, "f4"), FIELD(Body, vz, "f4"), FIELD(Body, yaw, "f4"), FIELD(Body, pitch, "f4"),
                FIELD(Body, rest, "i4")));
    out["Mover"] = record(
        sizeof(Mover),
        list_of(FIELD(Mover, column0, "i4"), FIELD(Mover, row0, "i4"), FIELD(Mover, column1, "i4"),
                FIELD(Mover, row1, "i4"), FIELD(Mover, closed, "f4"), FIELD(Mover, open, "f4"), FIELD(Mover, speed, "f4"),
                FIELD(Mover, height, "f4"), FIELD(Mover, material, "i4"), FIELD(Mover, sensors, "i4"),
                FIELD(Mover, is_door, "i4")));
    out["Sensor"] = record(
        sizeof(Sensor),
        list_of(FIELD(Sensor, x, "f4"), FIELD(Sensor, y, "f4"), FIELD(Sensor, z, "f4"), FIELD(Sensor, hx, "f4"),
                FIELD(Sensor, hy, "f4"), FIELD(Sensor, hz, "f4"), FIELD(Sensor, key, "i4"), FIELD(Sensor, mode, "i4"),
                FIELD(Sensor, is_on, "i4"), FIELD(Sensor, material, "i4")));
    out["Apple"] = record(
        sizeof(Apple),
        list_of(FIELD(Apple, x, "f4"), FIELD(Apple, y, "f4"), FIELD(Apple, z, "f4"), FIELD(Apple, radius, "f4"),
                FIELD(Apple, reward, "f4"), FIELD(Apple, is_terminal, "i4"), FIELD(Apple, is_eaten, "i4"),
                FIELD(Apple, material, "i4")));
    out["Strip"] = record(
        sizeof(Strip),
        list_of(FIELD(Strip, x0, "f4"), FIELD(Strip, y0, "f4"), FIELD(Strip, x1, "f4"), FIELD(Strip, y1, "f4"),
                FIELD(Strip, z, "f4"), FIELD(Strip, reward, "f4"), FIELD(Strip, is_inside, "i4"),
                FIELD(Strip, num_entries, "i4"), FIELD(Strip, material, "i4")));
    out["Agent"] = record(
        sizeof(Agent),
        list_of(FIELD(Agent, x, "f4"), FIELD(Agent, y, "f4"), FIELD(Agent, z, "f4"), FIELD(Agent, vx, "f4"),
                FIELD(Agent, vy, "f4"), FIELD(Agent, vz, "f4"), FIELD(Agent, wx, "f4"), FIELD(Agent, wy, "f4"),
                FIELD(Agent, yaw, "f4"), FIELD(Agent, pitch, "f4"),
                FIELD(Agent, hand, "f4"), FIELD(Agent, held, "i4"), FIELD(Agent, was_gripping, "i4"),
                FIELD(Agent, lag, "f4"), FIELDS(Agent, acceleration, "f4", 3), FIELDS(Agent, trail, "f4", kTrail, 3),
                FIELD(Agent, trail_at, "i4")));
    out["State"] = record(
        sizeof(State),
        list_of(FIELD(State, version, "i4"), FIELD(State, tick, "i4"), FIELD(State, num_bodies, "i4"),
                FIELD(State, num_movers, "i4"), FIELD(State, num_sensors, "i4"), FIELD(State, num_apples, "i4"),
                FIELD(State, num_strips, "i4"), FIELD(State, rows, "i4"), FIELD(State, columns, "i4"),
                FIELD(State, cap, "f4"), FIELD(State, reward, "f4"), FIELD(State, score, "f4"), FIELD(State, is_over, "i4"),
                FIELD(State, agent, "Agent"), FIELDS(State, materials, "Material", kMaxMaterials),
                FIELDS(State, bodies, "Body", kMaxBodies), FIELDS(State, movers, "Mover", kMaxMovers),
                FIELDS(State, sensors, "Sensor", kMaxSensors), FIELDS(State, apples, "Apple", kMaxApples),
                FIELDS(State, strips, "Strip", kMaxStrips), FIELDS(State, heights, "f4", kSide, kSide),
                FIELDS(State, tops, "u1", kSide, kSide), FIELDS(State, sides, "u1", kSide, kSide)));
    return out;
}

std::vector<std::string> kernel_names() {
    std::vector<std::string> names;
    for (int rank = 0; kernels(rank) != nullptr; ++rank) names.push_back(kernels(rank)->name);
    return names;
}

}  // namespace

NB_MODULE(_rooms, m) {
    nb::class_<Batch>(m, "Batch")
        .def(
            "__init__",
            [](Batch* self, int num, int width, int height, int threads, int rank) {
                check_range("num", num, 1, 1 << 20);
                check_range("width", width, 8, 1024);
                check_range("height", height, 6, 1024);
                check_range("threads", threads, 1, 256);
                new (self) Batch(num, View{width, height}, threads, kernels_of(rank));
            },
            "num"_a, "width"_a, "height"_a, nb::kw_only(), "threads"_a = 1, "rank"_a = 0)
        .def("load", &load, "states"_a.noconvert(), "slot"_a)
        .def("step", &step, "states"_a.noconvert(), "actions"_a.noconvert(), "repeats"_a.noconvert(),
             "images"_a.noconvert().none());
    m.def("layout", &layout);
    m.def("kernel_names", &kernel_names);
    m.attr("VERSION") = kVersion;
}
