// One group of the pruned index: its atoms' projections in buckets, and the boxes around them.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

#include "groups.h"

namespace softcount {

constexpr int kMostAtoms = 704;    // a larger group is split
constexpr int kBuiltAtoms = 560;   // atoms per group when all are built
constexpr int kFewestAtoms = 48;   // a smaller one is dissolved
constexpr int kMostBuckets = 64;   // room; 63 are used at most, one bit of a mask each
constexpr int kBuiltFill = 12;     // atoms per bucket after a rebuild, of kBucket
constexpr int kTile = kProjected * kLanes;
constexpr float kRound = 1e-5f;    // relative slack on radii
constexpr float kTiny = 1e-18f;    // absolute slack, covers underflow of squares

// One block of memory: the fixed part, then the frame: centre [stride], basis [projected × stride].
struct alignas(64) GroupIndex::Group {
    int num_atoms, num_buckets, num_changes;
    float box[2 * kProjected], frame[kProjected], most[kProjected], scale;
    float bucket_tiles[kMostBuckets / kLanes * kTile];
    int16_t bucket_low[kMostBuckets * kProjected], bucket_high[kMostBuckets * kProjected];
    uint8_t bucket_size[kMostBuckets];
    int16_t steps[kMostBuckets * kBucket * kProjected];
    int32_t slots[kMostBuckets * kBucket];

    float* centre() { return reinterpret_cast<float*>(this + 1); }
    const float* centre() const { return reinterpret_cast<const float*>(this + 1); }
    float* basis(int stride) { return centre() + stride; }
    const float* basis(int stride) const { return centre() + stride; }
    GroupView view() const { return {box, frame, most, scale, bucket_low, bucket_high, steps, slots, bucket_size, num_buckets}; }

    float* bucket_at(int b) { return bucket_tiles + b / kLanes * kTile + b % kLanes; }
    int16_t* steps_at(int lane) { return steps + lane / kBucket * (kBucket * kProjected) + lane % kBucket; }

    int box_at(int b) const { return b / 16 * (16 * kProjected) + b % 16; }

    void clear_bucket(int b) {
        bucket_size[b] = 0;
        for (int j = 0; j < kProjected; ++j) {
            bucket_low[box_at(b) + j * 16] = 32767;
            bucket_high[box_at(b) + j * 16] = 0;
        }
    }

    // Writes an atom's coordinates and widens the boxes around it.
    void set_point(int lane, const float* y) {
        int16_t point[kProjected];
        to_steps(frame, most, scale, y, point);
        const int at = box_at(lane / kBucket);
        for (int j = 0; j < kProjected; ++j) {
            steps_at(lane)[j * kBucket] = point[j];
            bucket_low[at + j * 16] = std::min(bucket_low[at + j * 16], point[j]);
            bucket_high[at + j * 16] = std::max(bucket_high[at + j * 16], point[j]);
            box[j] = std::min(box[j], y[j]);
            box[kProjected + j] = std::max(box[kProjected + j], y[j]);
        }
    }

    bool is_inside(int b, const float* y) const {
        int16_t point[kProjected];
        to_steps(frame, most, scale, y, point);
        for (int j = 0; j < kProjected; ++j)
            if (point[j] < bucket_low[box_at(b) + j * 16] || point[j] > bucket_high[box_at(b) + j * 16]) return false;
        return true;
    }

    // The frame is the box of the atoms at hand; 32000 steps along its longest side.
    void set_frame(const float* projected, int count) {
        std::fill(box, box + kProjected, std::numeric_limits<float>::infinity());
        std::fill(box + kProjected, box + 2 * kProjected, -std::numeric_limits<float>::infinity());
        float longest = 0.0f;
        for (int j = 0; j < kProjected; ++j) {
            for (int s = 0; s < count; ++s) {
                box[j] = std::min(box[j], projected[s * kProjected + j]);
                box[kProjected + j] = std::max(box[kProjected + j], projected[s * kProjected + j]);
            }
            frame[j] = box[j];
            longest = std::max(longest, box[kProjected + j] - box[j]);
        }
        scale = longest > 1e-30f ? 32000.0f / longest : 0.0f;
        for (int j = 0; j < kProjected; ++j) most[j] = std::floor((box[kProjected + j] - frame[j]) * scale + 0.5f);
    }
};

}  // namespace softcount
