#include "rooms_batch.h"

namespace softcount {
namespace rooms {

namespace {
constexpr int kAtOnce = 4;  // worlds that a thread takes at a time
constexpr int kNumActions = 9;
}  // namespace

Batch::Batch(int num, View view, int threads, const Kernels& kernels)
    : num(num), view(view), kernels_(kernels), meshes_(size_t(num)), scratch_(size_t(threads)) {
    for (auto& part : scratch_) part.resize(size_t(kernels.scratch_bytes(view) + 7) / 8);
    for (int i = 1; i < threads; ++i) helpers_.emplace_back([this, i] { work(i); });
}

Batch::~Batch() {
    {
        std::lock_guard<std::mutex> lock(gate_);
        is_closing_ = true;
    }
    begin_.notify_all();
    for (auto& helper : helpers_) helper.join();
}

void Batch::step(State* states, const float* actions, const int32_t* repeats, uint8_t* images) {
    states_ = states, actions_ = actions, repeats_ = repeats, images_ = images;
    next_ = 0;
    if (!helpers_.empty()) {
        std::lock_guard<std::mutex> lock(gate_);
        ++round_;
        num_busy_ = int(helpers_.size());
        begin_.notify_all();
    }
    do_some(0);
    std::unique_lock<std::mutex> lock(gate_);
    end_.wait(lock, [this] { return num_busy_ == 0; });
}

void Batch::work(int thread) {
    int seen = 0;
    for (;;) {
        {
            std::unique_lock<std::mutex> lock(gate_);
            begin_.wait(lock, [&] { return is_closing_ || round_ != seen; });
            if (is_closing_) return;
            seen = round_;
        }
        do_some(thread);
        std::lock_guard<std::mutex> lock(gate_);
        if (--num_busy_ == 0) end_.notify_one();
    }
}

void Batch::do_some(int thread) {
    const size_t bytes = size_t(view.width) * size_t(view.height) * 3;
    for (int first = next_.fetch_add(kAtOnce); first < num; first = next_.fetch_add(kAtOnce))
        for (int i = first; i < num && i < first + kAtOnce; ++i) {
            if (repeats_[i] > 0) kernels_.advance(states_[i], actions_ + i * kNumActions, repeats_[i]);
            if (images_) kernels_.draw(states_[i], meshes_[size_t(i)], view, scratch_[size_t(thread)].data(), images_ + size_t(i) * bytes);
        }
}

}  // namespace rooms
}  // namespace softcount
