// Many worlds stepped and drawn together by a few threads. The states belong to the caller; a batch keeps the merged
// ground of each slot and what drawing works in. Worlds share nothing, so the number of threads changes no bit.
#pragma once

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

#include "rooms.h"

namespace softcount {
namespace rooms {

class Batch {
   public:
    Batch(int num, View view, int threads, const Kernels& kernels);
    ~Batch();
    Batch(const Batch&) = delete;

    // Merges the ground of a slot anew; false where it has too many rectangles.
    bool load(int slot, const State& state) { return kernels_.merge(state, meshes_[size_t(slot)]); }

    // Advances the worlds whose `repeats` are above 0, then draws all of them; no image: nothing is drawn.
    void step(State* states, const float* actions, const int32_t* repeats, uint8_t* images);

    const int num;
    const View view;
    std::mutex mutex;  // one call at a time

   private:
    void work(int thread);
    void do_some(int thread);

    const Kernels& kernels_;
    std::vector<Mesh> meshes_;
    std::vector<std::vector<uint64_t>> scratch_;  // one for each thread
    State* states_ = nullptr;
    const float* actions_ = nullptr;
    const int32_t* repeats_ = nullptr;
    uint8_t* images_ = nullptr;
    std::atomic<int> next_{0};
    std::vector<std::thread> helpers_;
    std::mutex gate_;
    std::condition_variable begin_, end_;
    int round_ = 0, num_busy_ = 0;
    bool is_closing_ = false;
};

}  // namespace rooms
}  // namespace softcount
