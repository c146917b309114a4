// The inner loops: float32 distances that only filter, float64 distances that decide and pay.
//
// One source (kernels_impl.h) is compiled twice, for AVX2 + FMA and for the baseline of the
// platform; `best_kernels` chooses at run time. Filter values may differ in their last bits
// between the two, float64 distances may not: they are Σ_i (m_i − e_i)² in order of i, without FMA.
#pragma once

#include <cstdint>

namespace softcount {

constexpr int kLanes = 8;       // points side by side in a tile: tile[dim][lane]
constexpr int kProjected = 8;   // dimensions of the local projection in the pruned search
constexpr int kBucket = 16;     // lanes of a bucket, two tiles
constexpr int kQueryBlock = 6;  // queries that share one pass over a packed block of atoms

struct Candidate {
    float d2;
    int32_t slot;
};

// Collects the atoms whose filter distance is at most `threshold`; see candidates.h.
struct Queue {
    Candidate* items;
    int32_t size, capacity;
    float threshold;
    void (*make_room)(Queue*);  // called when fewer than 16 places are left

    void push(float d2, int32_t slot) {
        if (size + 16 > capacity) make_room(this);
        items[size++] = {d2, slot};
    }
};

// What a scan of one group of the pruned index reads (groups.h). Coordinates of atoms are 16-bit steps of a frame:
// q_j = (y_j − frame_j)·scale, clamped to the frame.
struct GroupView {
    const float* box;            // least and greatest coordinates of its atoms and frame, 2 × [projected]
    const float* frame;          // [projected]
    const float* most;           // the last step in each direction, [projected]
    float scale;
    const int16_t* bucket_low;   // least and greatest steps of a bucket's atoms, [sixteen buckets][projected][16]
    const int16_t* bucket_high;
    const int16_t* steps;        // atoms, [bucket][projected][kBucket]
    const int32_t* slots;        // [bucket][kBucket]
    const uint8_t* bucket_size;
    int num_buckets;
};

// Where a projection lies in the frame of its group.
static inline void to_steps(const float* frame, const float* most, float scale, const float* y, int16_t* steps) {
    for (int j = 0; j < kProjected; ++j) {
        const float x = (y[j] - frame[j]) * scale + 0.5f;
        steps[j] = (int16_t)(x < 0.0f ? 0.0f : x > most[j] ? most[j] : x);
    }
}

struct Kernels {
    const char* name;

    // Squared distances of `num_tiles` tiles of points in `dims` dimensions to e.
    void (*tile_distances)(const float* tiles, int num_tiles, int dims, const float* e, float* d2);

    // Writes the groups with √d2·shrink − radius ≤ reach and those bounds; returns how many.
    int (*select)(const float* d2, const float* radii, int num, float shrink, float reach, int32_t* groups, float* bounds);

    // Squared distances of the rows in `slots` to e.
    void (*row_distances)(const float* rows, int stride, const float* e, const int32_t* slots, int count, float* d2);

    // Pushes rows first … last−1 that are near enough to the one query e.
    void (*scan_rows)(const float* rows, int64_t first, int64_t last, int stride, const float* e, Queue* queue);

    // The same for many queries, in blocks of kQueryBlock: [block][dim][query]; `packed` is scratch of 64 × stride floats.
    void (*scan_batch)(const float* rows, int64_t first, int64_t last, int stride, const float* queries,
                       int num_queries, Queue* const* queues, float* packed);

    // y_j = Σ_i basis[j][i] (e_i − centre_i)
    void (*project)(const float* basis, int stride, const float* centre, const float* e, float* y);

    // Writes to `out` the slots of atoms whose projection lies within `reach` of y; skips buckets whose bit is set
    // in `done`. Returns how many, and adds to `num_scanned` how many atoms it looked at.
    int (*scan_group)(const GroupView& group, const float* y, float reach, uint64_t done, int32_t* out,
                      int64_t* num_scanned);

    // Float64, in order of dimension: the distances that decide and pay.
    void (*exact_distances)(const float* rows, int stride, int dim, const float* e, const int32_t* slots, int count,
                            double* d2);
};

const Kernels& best_kernels();
const Kernels& baseline_kernels();

}  // namespace softcount
