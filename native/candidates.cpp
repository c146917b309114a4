#include "candidates.h"

#include <algorithm>

namespace softcount {

void Candidates::start(int keep, double ball, const Margin& margin) {
    keep_ = keep;
    margin_ = margin;
    ball_ = margin.above(std::nextafter(float(ball), std::numeric_limits<float>::infinity()));
    threshold = keep > 0 ? std::numeric_limits<float>::infinity() : ball_;
    if (storage_.size() < size_t(keep) + 128) storage_.resize(size_t(keep) + 128);
    items = storage_.data();
    capacity = int32_t(storage_.size());
    size = 0;
    make_room = double_or_drop;
}

void Candidates::tighten() {
    if (size < keep_ || keep_ == 0 || threshold <= ball_) return;  // the ball is wanted whole
    std::nth_element(items, items + keep_ - 1, items + size, [](const Candidate& a, const Candidate& b) { return a.d2 < b.d2; });
    lower(items[keep_ - 1].d2);
}

// The same with a little more than is needed, but without branches that nobody can predict: halves the interval in
// which the `keep` nearest end.
void Candidates::tighten_roughly() {
    if (size < keep_ || keep_ == 0 || threshold <= ball_) return;
    float low = 0.0f, high = 0.0f;
    for (int32_t i = 0; i < size; ++i) high = items[i].d2 > high ? items[i].d2 : high;
    if (high > std::numeric_limits<float>::max()) return tighten();
    for (int step = 0; step < 12; ++step) {
        const float middle = 0.5f * (low + high);
        int32_t count = 0;
        for (int32_t i = 0; i < size; ++i) count += items[i].d2 <= middle;
        (count >= keep_ ? high : low) = middle;
        if (count >= keep_ && count <= keep_ + keep_ / 8) break;
    }
    lower(high);
}

// Lowers the threshold to what squared distance d2 or the ball still needs.
void Candidates::lower(float d2) {
    const float limit = std::max(margin_.above(d2), ball_);
    if (limit >= threshold) return;
    threshold = limit;
    int32_t num = 0;
    for (int32_t i = 0; i < size; ++i) {
        const Candidate one = items[i];
        items[num] = one;
        num += one.d2 <= limit;
    }
    size = num;
}

void Candidates::merge(const Candidates& other) {
    for (int32_t i = 0; i < other.size; ++i)
        if (other.items[i].d2 <= threshold) push(other.items[i].d2, other.items[i].slot);
}

void Candidates::double_or_drop(Queue* queue) {
    auto* self = static_cast<Candidates*>(queue);
    self->tighten_roughly();
    if (2 * self->size > self->capacity) {
        self->storage_.resize(2 * self->storage_.size());
        self->items = self->storage_.data();
        self->capacity = int32_t(self->storage_.size());
    }
}

}  // namespace softcount
