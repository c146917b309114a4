// The engine's two ways to find atoms, and the choice between them.
#include <algorithm>
#include <cmath>
#include <thread>

#include "engine.h"

namespace softcount {

namespace {
constexpr int64_t kSmallest = 1024;     // fewer atoms are not worth an index
constexpr int64_t kJudgeAfter = 64;     // rows the pruned search gets before it is judged
constexpr int64_t kFewRows = 3;         // fewer are scanned for one by one
constexpr int kHeirs = 8;               // atoms kept around a foreseen victim: itself, its heir, and some that may change
constexpr int64_t kFirstWait = 1 << 14, kLongestWait = 1 << 20;  // rows on the brute path between attempts
}  // namespace

// ---- finding atoms ----

void Engine::search(const float* e, int keep, double ball, Candidates& found) {
    found.start(keep, ball, margin_);
    if (index_ && !is_huge(e, stride_)) {
        SearchWork one;
        index_->search(e, found, one);
        found.tighten();
        note_search(one);
    } else {
        scan_one(e, found);
    }
}

void Engine::scan_one(const float* e, Candidates& found) {
    kernels_.scan_rows(atoms_.data(), 0, num_atoms, stride_, e, &found);
    found.tighten();
    work.num_scanned_brute += num_atoms;
}

// Fills `into` with the candidates of each row, then with the nearest of each atom in `others`; atoms are shared out
// among threads, which cannot change the result.
void Engine::scan_many(const float* rows, int64_t num_rows, int keep, double ball, const std::vector<int32_t>& others,
                       std::vector<Candidates>& into) {
    const int64_t num = num_rows + int64_t(others.size());
    const int64_t num_padded = (num + kQueryBlock - 1) / kQueryBlock * kQueryBlock;
    int threads = settings_.num_threads;
    auto query = [&](int64_t q) { return q < num_rows ? rows + q * stride_ : row(others[size_t(q - num_rows)]); };
    if (num_atoms * num * stride_ < (1 << 22)) threads = 1;  // too little to share out
    // Rows side by side in blocks: an atom that is in the cache meets all rows of a block at once.
    transposed_.assign(size_t(num_padded * stride_), 0.0f);
    for (int64_t q = 0; q < num; ++q)
        for (int i = 0; i < stride_; ++i)
            transposed_[size_t((q / kQueryBlock * stride_ + i) * kQueryBlock + q % kQueryBlock)] = query(q)[i];
    if (into.size() < size_t(threads * num_padded)) into.resize(size_t(threads * num_padded));
    std::vector<Queue*> queues(size_t(threads * num_padded));
    for (int64_t q = 0; q < threads * num_padded; ++q) {
        Candidates& found = into[size_t(q)];
        const bool is_row = q % num_padded < num_rows;
        found.start(is_row ? keep : kHeirs, is_row ? ball : 0.0, margin_);
        if (q % num_padded >= num) found.threshold = -1.0f;  // fills up a block, wants nothing
        queues[size_t(q)] = &found;
    }
    if (packed_.size() < size_t(threads * 64 * stride_)) packed_.resize(size_t(threads * 64 * stride_));
    auto scan_part = [&](int t) {
        // Parts begin at multiples of 64, the atoms that are packed together.
        const int64_t first = num_atoms * t / threads / 64 * 64;
        const int64_t last = t + 1 == threads ? num_atoms : num_atoms * (t + 1) / threads / 64 * 64;
        Queue** own = queues.data() + t * num_padded;
        if (num < kFewRows)
            for (int64_t q = 0; q < num; ++q) kernels_.scan_rows(atoms_.data(), first, last, stride_, query(q), own[q]);
        else
            kernels_.scan_batch(atoms_.data(), first, last, stride_, transposed_.data(), int(num), own,
                                packed_.data() + t * 64 * stride_);
    };
    std::vector<std::thread> workers;
    for (int t = 1; t < threads; ++t) workers.emplace_back(scan_part, t);
    scan_part(0);
    for (std::thread& worker : workers) worker.join();
    for (int64_t q = 0; q < num; ++q) {
        // What each thread kept is enough for the whole: the nearest of all are among the nearest of each part.
        for (int t = 1; t < threads; ++t) into[size_t(q)].merge(into[size_t(t * num_padded + q)]);
        into[size_t(q)].tighten();
    }
    work.num_scanned_brute += num * num_atoms;
}

// Sets exact_ to the candidates with their float64 distances.
void Engine::refine(const float* e, const Candidates& found) {
    slots_.clear();
    for (int32_t i = 0; i < found.size; ++i) slots_.push_back(found.items[i].slot);
    measure(e);
}

void Engine::measure(const float* e) {
    d2_.resize(slots_.size());
    kernels_.exact_distances(atoms_.data(), stride_, settings_.dim, e, slots_.data(), int(slots_.size()), d2_.data());
    exact_.clear();
    for (size_t i = 0; i < slots_.size(); ++i) exact_.push_back({d2_[i], slots_[i]});
}

// The same for candidates found before the changes of this batch; false if the `keep` nearest or one within `ball`
// may be missing.
bool Engine::refine_snapshot(const float* e, const Candidates& found, int keep, double ball) {
    // Atoms that changed since the scan are all measured: any of them may have come near.
    slots_ = changed_;
    for (int32_t i = 0; i < found.size; ++i)
        if (changed_at_[size_t(found.items[i].slot)] != batch_id_) slots_.push_back(found.items[i].slot);
    measure(e);
    if (found.is_exhaustive()) return true;
    const double complete_below = margin_.below(found.threshold);  // all unchanged atoms up to here were kept
    const size_t k = size_t(keep);
    if (exact_.size() < k || ball > complete_below) return false;
    std::nth_element(exact_.begin(), exact_.begin() + int64_t(k) - 1, exact_.end(),
                     [](const Exact& a, const Exact& b) { return a.d2 < b.d2; });
    return exact_[k - 1].d2 <= complete_below;  // else an atom that was not kept might be nearer
}

// ---- choosing the path ----

// Float operations that a search with the index costs, weighed by how fast they run (calibrated).
void Engine::note_search(const SearchWork& one) {
    SearchWork& total = work.pruned;
    total.num_centres += one.num_centres;
    total.num_groups += one.num_groups;
    total.num_projected += one.num_projected;
    total.num_compared += one.num_compared;
    const double dim = stride_;
    const double cost = double(one.num_centres) * dim * 0.5 + double(one.num_groups) * (kProjected * dim + 800.0) +
                        double(one.num_projected) * kProjected + double(one.num_compared) * (dim * 1.5 + 30.0);
    // A plain mean at first, then one that forgets: the embedding moves, and with it what can be pruned.
    rows_since_build_ += 1;
    pruned_cost_ += (cost - pruned_cost_) / double(std::min<int64_t>(rows_since_build_, 256));
}

void Engine::choose_path(int64_t num_rows) {
    if (path_ == Path::brute || num_atoms == 0) return drop_index();
    if (path_ == Path::pruned) {
        if (!index_) build_index();
        return;
    }
    if (num_atoms < kSmallest) return;
    if (!index_) {
        if (rows_since_build_ >= rows_to_wait_) build_index();
        return;
    }
    if (rows_since_build_ < kJudgeAfter) return;
    // A scan shares its pass over the atoms among the rows of a batch, so large batches pay less for each.
    const double brute_cost = double(num_atoms) * stride_ * (num_rows >= 16 ? 0.42 : num_rows >= 3 ? 0.6 : 0.9);
    if (pruned_cost_ > brute_cost) {
        drop_index();
        rows_to_wait_ = std::min(std::max(kFirstWait, 2 * rows_to_wait_), kLongestWait);
    } else if (pruned_cost_ < 0.5 * brute_cost) {
        rows_to_wait_ = 0;  // clearly better: what was learned of waiting is out of date
    }
}

void Engine::drop_index() {
    if (!index_) return;
    index_.reset();
    rows_since_build_ = 0;
}

bool Engine::build_index() {
    rows_since_build_ = 0;
    if (is_huge(atoms_.data(), num_atoms * stride_)) {
        rows_to_wait_ = std::min(std::max(kFirstWait, 2 * rows_to_wait_), kLongestWait);
        return false;
    }
    pruned_cost_ = 0.0;
    index_ = std::make_unique<GroupIndex>(atoms_.data(), settings_.dim, stride_, settings_.size, kernels_);
    index_->build(num_atoms);
    work.num_builds += 1;
    return true;
}

bool Engine::is_huge(const float* values, int64_t count) const {
    float largest = 0.0f;
    for (int64_t i = 0; i < count; ++i) largest = std::max(largest, std::fabs(values[i]));
    return largest > kHuge;
}

void Engine::set_path(Path path) {
    path_ = path;
    rows_to_wait_ = 0;
    drop_index();
}

}  // namespace softcount
