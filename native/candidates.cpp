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
    if (size < keep_ || keep_ == 0) return;
    std::nth_element(items, items + keep_ - 1, items + size, [](const Candidate& a, const Candidate& b) { return a.d2 < b.d2; });
    const float limit = std::max(margin_.above(items[keep_ - 1].d2), ball_);
    if (limit >= threshold) return;
    threshold = limit;
    size = int32_t(std::partition(items, items + size, [limit](const Candidate& c) { return c.d2 <= limit; }) - items);
}

void Candidates::merge(const Candidates& other) {
    for (int32_t i = 0; i < other.size; ++i)
        if (other.items[i].d2 <= threshold) push(other.items[i].d2, other.items[i].slot);
}

void Candidates::double_or_drop(Queue* queue) {
    auto* self = static_cast<Candidates*>(queue);
    self->tighten();
    if (2 * self->size > self->capacity) {
        self->storage_.resize(2 * self->storage_.size());
        self->items = self->storage_.data();
        self->capacity = int32_t(self->storage_.size());
    }
}

}  // namespace softcount
