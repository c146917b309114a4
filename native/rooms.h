// Eight Rooms: a small physical world seen in first person.
//
// A world is one `State`: plain 32-bit numbers without holes, so that saving is copying and equal worlds are equal
// bytes. Levels are data that fill a State; no task is known here. One source (rooms_impl.h) is compiled for AVX2 and
// for the baseline of the platform. Both give the same bits: no contraction, no approximate reciprocals, own sines.
//
// Units: metres, seconds, radians. x grows along columns, y along rows, z is up; yaw turns from x to y, which is to
// the right for whoever looks. A cell is 0.5 m wide.
#pragma once

#include <cstdint>

namespace softcount {
namespace rooms {

constexpr int kVersion = 1;
constexpr int kSide = 64;  // cells along a side of the map
constexpr int kMaxBodies = 72, kMaxMovers = 16, kMaxSensors = 16, kMaxApples = 8, kMaxStrips = 8, kMaxMaterials = 32;
constexpr int kTrail = 6;  // substeps of 1/60 s: a throw is the fastest of the last 0.1 s
constexpr float kCell = 0.5f;
constexpr float kWall = 30.0f;  // the height of walls for bodies: nothing is thrown over them

enum Kind : int32_t { kBox = 0, kBall = 1, kStick = 2 };
enum Flag : int32_t { kLiftable = 1, kPushable = 2, kAlive = 4, kAsleep = 8 };
// A latch stays on; hold is on while touched; consume latches and destroys the key; destroy only destroys.
enum Mode : int32_t { kLatch = 0, kHold = 1, kConsume = 2, kDestroy = 3 };

// A surface: colour, and a pattern of bricks whose contrast fades with distance.
struct Material {
    float red, green, blue;
    float across, upward;  // bricks per metre
    float shift;           // by how much every other row of bricks is moved
    float checker, noise;  // contrasts
};

// An upright box, a ball, or a stick (a row of small balls). Neither liftable nor pushable: it never moves.
struct Body {
    int32_t kind, flags, key, material;
    float mass;
    float hx, hy, hz;  // half sizes; a ball's radius three times; a stick's half length first
    float x, y, z;     // of the centre
    float vx, vy, vz;
    float yaw, pitch;  // only a held stick has a pitch
    int32_t rest;      // substeps without motion
};

// A rectangle of cells that slides between two heights: door or bridge.
struct Mover {
    int32_t column0, row0, column1, row1;  // half open
    float closed, open, speed, height;
    int32_t material;
    int32_t sensors;  // a bit for each sensor that must be on
    int32_t is_door;  // fully closed it is a wall
};

// A box that feels bodies with its key number.
struct Sensor {
    float x, y, z, hx, hy, hz;
    int32_t key, mode, is_on, material;
};

struct Apple {
    float x, y, z, radius, reward;
    int32_t is_terminal, is_eaten, material;
};

// A band on the floor that pays at every entry.
struct Strip {
    float x0, y0, x1, y1, z, reward;
    int32_t is_inside, num_entries, material;
};

struct Agent {
    float x, y, z;  // of the feet
    float vx, vy, vz;        // as it moved
    float wx, wy;            // as it walks: what stands in the way does not slow its legs
    float yaw, pitch, hand;  // hand: how far the held body is from the eye
    int32_t held, was_gripping;
    float lag;              // how far the held body is from where the hand wants it
    float acceleration[3];  // right, up, forward
    float trail[kTrail][3];
    int32_t trail_at;
};

struct State {
    int32_t version, tick;
    int32_t num_bodies, num_movers, num_sensors, num_apples, num_strips;
    int32_t rows, columns;  // of the map in use; beyond is wall
    float cap;              // how high walls are drawn
    float reward, score;    // of the last agent step; of the episode
    int32_t is_over;
    Agent agent;
    Material materials[kMaxMaterials];
    Body bodies[kMaxBodies];
    Mover movers[kMaxMovers];
    Sensor sensors[kMaxSensors];
    Apple apples[kMaxApples];
    Strip strips[kMaxStrips];
    float heights[kSide * kSide];  // [row][column], movers included as they stand
    uint8_t tops[kSide * kSide], sides[kSide * kSide];  // materials
};

static_assert(sizeof(State) % 4 == 0, "a State has no holes");

// A rectangle of the ground that can be seen, merged from many cells.
struct Quad {
    int32_t axis, material;  // 0, 1, 2: its normal is along x, y, z
    float sign, at;          // of the normal; where on that axis
    float a0, a1, b0, b1;    // along the other two axes, in their order
};

constexpr int kMaxQuads = 2048;

struct Mesh {
    int num = 0;
    Quad quads[kMaxQuads];
};

struct View {
    int width, height;
};

struct Kernels {
    const char* name;
    // Advances a world by `repeat` ticks, or until its episode ends, with the nine actions.
    void (*advance)(State& state, const float* actions, int repeat);
    // Merges the ground into rectangles; false where there are too many.
    bool (*merge)(const State& state, Mesh& mesh);
    // Bytes that `draw` needs to work in.
    int64_t (*scratch_bytes)(View view);
    // Draws what the agent sees: [height][width][3].
    void (*draw)(const State& state, const Mesh& mesh, View view, void* scratch, uint8_t* image);
};

// The kernels that this processor can run, best first; the baseline is the last. Null beyond.
const Kernels* kernels(int rank);

}  // namespace rooms
}  // namespace softcount
