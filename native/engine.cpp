#include "engine.h"

#include <algorithm>
#include <cmath>
#include <thread>

namespace softcount {

namespace {
constexpr double kFoldBelow = -1000.0;  // FOLD_BELOW of recode.py
constexpr int kSpare = 16;              // neighbours kept beyond k, for atoms that change within a batch
constexpr double kBallGrowth = 1.05;    // how much d²_ema may grow within a batch before rows are scanned again
constexpr int64_t kChunk = 256;         // rows per snapshot
constexpr int64_t kSmallest = 1024;     // fewer atoms are not worth an index
constexpr int64_t kJudgeAfter = 64;     // rows the pruned search gets before it is judged
constexpr int64_t kFirstWait = 1 << 14, kLongestWait = 1 << 20;  // rows on the brute path between attempts

double logaddexp(double x, double y) {  // as NumPy defines it
    if (x == y) return x + 0.693147180559945309417232121458176568;
    const double difference = x - y;
    return difference > 0 ? x + std::log1p(std::exp(-difference)) : y + std::log1p(std::exp(difference));
}
}  // namespace

Engine::Engine(const Settings& settings, bool only_baseline)
    : log_counts(size_t(settings.size)), births(size_t(settings.size)), settings_(settings),
      kernels_(only_baseline ? baseline_kernels() : best_kernels()), stride_((settings.dim + 7) / 8 * 8),
      margin_(settings.dim), atoms_(size_t(settings.size * stride_)), removal_(settings.size, settings.removal_power),
      changed_at_(size_t(settings.size), -1) {}

// ---- Algorithm 1 ----

void Engine::observe(const float* embeddings, int64_t num, const double* uniforms, const Outcome& out) {
    padded_.assign(size_t(num * stride_), 0.0f);
    for (int64_t i = 0; i < num; ++i)
        std::copy(embeddings + i * settings_.dim, embeddings + (i + 1) * settings_.dim, padded_.data() + i * stride_);
    for (int64_t at = 0; at < num; at += kChunk) {
        const int64_t count = std::min(kChunk, num - at);
        choose_path(count);
        if (index_) {
            observe_pruned(padded_.data(), at, at + count, uniforms, out);
        } else {
            observe_brute(padded_.data(), at, at + count, uniforms, out);
        }
    }
}

// Searches and learns row after row.
void Engine::observe_pruned(const float* rows, int64_t first, int64_t last, const double* uniforms, const Outcome& out) {
    for (int64_t i = first; i < last; ++i) {
        const float* e = rows + i * stride_;
        search(e, neighbours_among(num_atoms), d2_ema(), single_);
        refine(e, single_);
        learn(e, uniforms[2 * i], uniforms[2 * i + 1], out, i);
    }
    work.num_rows_pruned += last - first;
}

// Scans for all rows at once, then goes through them; atoms that changed meanwhile are looked at one by one.
void Engine::observe_brute(const float* rows, int64_t first, int64_t last, const double* uniforms, const Outcome& out) {
    const int keep = settings_.neighbours + (last - first > 1 ? kSpare : 0);
    scan_many(rows + first * stride_, last - first, keep, d2_ema() * (last - first > 1 ? kBallGrowth : 1.0));
    changed_.clear();
    ++batch_id_;
    for (int64_t i = first; i < last; ++i) {
        const float* e = rows + i * stride_;
        if (!refine_snapshot(e, snapshot_[size_t(i - first)])) {
            search(e, neighbours_among(num_atoms), d2_ema(), single_);
            refine(e, single_);
            work.num_rescans += 1;
        }
        learn(e, uniforms[2 * i], uniforms[2 * i + 1], out, i);
    }
    work.num_rows_brute += last - first;
    rows_since_build_ += last - first;
}

// Scores an embedding, then learns from it; exact_ holds its k nearest atoms and all within d²_ema.
void Engine::learn(const float* e, double u, double v, const Outcome& out, int64_t at) {
    const int64_t n = num_atoms;
    const double count = soft_count();  // L3
    int64_t star = -1;
    double d2_star = std::numeric_limits<double>::infinity();
    if (n > 0) {
        const double d2_near = mean_of_nearest();  // L5
        d2_biased += settings_.d2_step * (d2_near - d2_biased);  // L6
        d2_weight += settings_.d2_step * (1.0 - d2_weight);
        star = exact_[0].slot;  // L8
        d2_star = exact_[0].d2;
    }
    discount();  // L7
    const bool is_far = d2_star > settings_.far_tolerance * d2_ema();
    const bool is_inserted = n < settings_.num_warmup || (is_far && u < settings_.insertion_probability);  // L9-10
    int64_t slot = star, merged_into = -1;
    if (is_inserted) {
        slot = make_room(v, &merged_into);  // L11-13
        write(int32_t(slot), e);            // L14
    } else {
        absorb(int32_t(star), e);  // L16-17
    }
    num_observed += 1;
    out.reward[at] = reward(count);  // L4
    out.soft_count[at] = count;
    out.d2_nearest[at] = d2_star;
    out.nearest[at] = star;
    out.is_far[at] = is_far;
    out.is_inserted[at] = is_inserted;
    out.slot[at] = slot;
    out.merged_into[at] = merged_into;
}

int Engine::neighbours_among(int64_t n) const {
    const int64_t k = settings_.neighbours;
    return int(n < settings_.num_warmup ? std::min(k, std::max<int64_t>(1, n / 10)) : std::min(k, n));
}

// Sorts the k nearest to the front of exact_ and averages them in that order.
double Engine::mean_of_nearest() {
    const int k = neighbours_among(num_atoms);
    std::partial_sort(exact_.begin(), exact_.begin() + k, exact_.end(), [](const Exact& a, const Exact& b) {
        return a.d2 < b.d2 || (a.d2 == b.d2 && a.slot < b.slot);
    });
    double sum = exact_[0].d2;
    for (int i = 1; i < k; ++i) sum += exact_[size_t(i)].d2;
    return sum / k;
}

// Sums (1 + c_l) K(m_l, e) in slot order.
double Engine::soft_count() {
    const double bandwidth = d2_ema(), width = settings_.kernel_epsilon * bandwidth;
    scratch_.clear();
    for (const Exact& x : exact_)
        if (bandwidth == 0.0 ? x.d2 == 0.0 : x.d2 < bandwidth) scratch_.push_back(x);
    std::sort(scratch_.begin(), scratch_.end(), [](const Exact& a, const Exact& b) { return a.slot < b.slot; });
    double sum = 0.0;
    for (const Exact& x : scratch_) {
        const double weight = bandwidth == 0.0 ? 1.0 : 1.0 / (1.0 + x.d2 / width);
        if (weight != 0.0) sum += (1.0 + std::exp(log_counts[size_t(x.slot)] + log_scale)) * weight;
    }
    return sum;
}

double Engine::reward(double soft_count) const { return 1.0 / (std::sqrt(soft_count) + settings_.reward_constant); }

void Engine::discount() {
    log_scale += settings_.log_discount;
    if (log_scale < kFoldBelow) {
        for (int64_t slot = 0; slot < num_atoms; ++slot) log_counts[size_t(slot)] += log_scale;
        log_scale = 0.0;
        removal_.rebuild(log_counts.data(), num_atoms);
    }
}

void Engine::set_log_count(int64_t slot, double value) {
    log_counts[size_t(slot)] = value;
    removal_.set(slot, value);
}

int64_t Engine::make_room(double v, int64_t* merged_into) {
    if (num_atoms < settings_.size) return num_atoms++;
    const int64_t victim = removal_.choose(v);
    const int32_t heir = num_atoms > 1 ? heir_of(int32_t(victim)) : -1;
    if (heir >= 0) set_log_count(heir, logaddexp(log_counts[size_t(heir)], log_counts[size_t(victim)]));
    *merged_into = heir;
    if (index_) index_->remove(int32_t(victim));
    return victim;
}

// The nearest other atom, of equals the lowest slot.
int32_t Engine::heir_of(int32_t victim) {
    const float* e = row(victim);
    search(e, 2, 0.0, single_);
    refine(e, single_);
    work.num_heirs += 1;
    Exact best{std::numeric_limits<double>::infinity(), -1};
    for (const Exact& x : exact_)
        if (x.slot != victim && (best.slot < 0 || x.d2 < best.d2 || (x.d2 == best.d2 && x.slot < best.slot))) best = x;
    return best.slot;
}

void Engine::write(int32_t slot, const float* e) {
    std::copy(e, e + stride_, atoms_.data() + int64_t(slot) * stride_);
    births[size_t(slot)] = num_observed;
    set_log_count(slot, -log_scale);
    mark_changed(slot);
    if (!index_) return;
    if (is_huge(e, stride_)) drop_index();
    else index_->insert(slot);
}

void Engine::absorb(int32_t star, const float* e) {
    const double c = std::exp(log_counts[size_t(star)] + log_scale);
    float* m = atoms_.data() + int64_t(star) * stride_;
    for (int i = 0; i < settings_.dim; ++i) m[i] = float((c * double(m[i]) + double(e[i])) / (c + 1.0));
    set_log_count(star, std::log1p(c) - log_scale);
    mark_changed(star);
    if (!index_) return;
    if (is_huge(m, stride_)) drop_index();
    else index_->move(star);
}

void Engine::mark_changed(int32_t slot) {
    if (changed_at_[size_t(slot)] == batch_id_) return;
    changed_at_[size_t(slot)] = batch_id_;
    changed_.push_back(slot);
}

void Engine::score(const float* embeddings, int64_t num, double* rewards) {
    padded_.assign(size_t(num * stride_), 0.0f);
    for (int64_t i = 0; i < num; ++i)
        std::copy(embeddings + i * settings_.dim, embeddings + (i + 1) * settings_.dim, padded_.data() + i * stride_);
    for (int64_t at = 0; at < num; at += kChunk) {
        const int64_t count = std::min(kChunk, num - at);
        if (!index_) scan_many(padded_.data() + at * stride_, count, 0, d2_ema());
        for (int64_t i = 0; i < count; ++i) {
            const float* e = padded_.data() + (at + i) * stride_;
            if (index_) search(e, 0, d2_ema(), single_);
            refine(e, index_ ? single_ : snapshot_[size_t(i)]);
            rewards[at + i] = reward(soft_count());
        }
    }
}

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

// Fills snapshot_ with the candidates of each row; atoms are shared out among threads, which cannot change the result.
void Engine::scan_many(const float* rows, int64_t num, int keep, double ball) {
    const int64_t num_blocks = (num + kQueryBlock - 1) / kQueryBlock, num_padded = num_blocks * kQueryBlock;
    int threads = settings_.num_threads;
    if (num_atoms * num * stride_ < (1 << 22)) threads = 1;
    transposed_.assign(size_t(num_padded * stride_), 0.0f);
    for (int64_t q = 0; q < num; ++q)
        for (int i = 0; i < stride_; ++i)
            transposed_[size_t((q / kQueryBlock * stride_ + i) * kQueryBlock + q % kQueryBlock)] = rows[q * stride_ + i];
    if (snapshot_.size() < size_t(threads * num_padded)) snapshot_.resize(size_t(threads * num_padded));
    std::vector<Queue*> queues(size_t(threads * num_padded));
    for (int64_t q = 0; q < threads * num_padded; ++q) {
        Candidates& found = snapshot_[size_t(q)];
        found.start(keep, ball, margin_);
        if (q % num_padded >= num) found.threshold = -1.0f;  // fills up a block, wants nothing
        queues[size_t(q)] = &found;
    }
    if (packed_.size() < size_t(threads * 64 * stride_)) packed_.resize(size_t(threads * 64 * stride_));
    auto scan_part = [&](int t) {
        const int64_t first = num_atoms * t / threads / 64 * 64;
        const int64_t last = t + 1 == threads ? num_atoms : num_atoms * (t + 1) / threads / 64 * 64;
        Queue** own = queues.data() + t * num_padded;
        if (num < kQueryBlock - 1)
            for (int64_t q = 0; q < num; ++q) kernels_.scan_rows(atoms_.data(), first, last, stride_, rows + q * stride_, own[q]);
        else
            kernels_.scan_batch(atoms_.data(), first, last, stride_, transposed_.data(), int(num_blocks), own,
                                packed_.data() + t * 64 * stride_);
    };
    std::vector<std::thread> others;
    for (int t = 1; t < threads; ++t) others.emplace_back(scan_part, t);
    scan_part(0);
    for (std::thread& other : others) other.join();
    for (int64_t q = 0; q < num; ++q) {
        for (int t = 1; t < threads; ++t) snapshot_[size_t(q)].merge(snapshot_[size_t(t * num_padded + q)]);
        snapshot_[size_t(q)].tighten();
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

// The same for candidates found before the changes of this batch; false if they may not suffice.
bool Engine::refine_snapshot(const float* e, const Candidates& found) {
    slots_ = changed_;
    for (int32_t i = 0; i < found.size; ++i)
        if (changed_at_[size_t(found.items[i].slot)] != batch_id_) slots_.push_back(found.items[i].slot);
    measure(e);
    if (found.is_exhaustive()) return true;
    const double complete_below = margin_.below(found.threshold);  // all unchanged atoms up to here were kept
    const size_t k = size_t(neighbours_among(num_atoms));
    if (exact_.size() < k || d2_ema() > complete_below) return false;
    std::nth_element(exact_.begin(), exact_.begin() + int64_t(k) - 1, exact_.end(),
                     [](const Exact& a, const Exact& b) { return a.d2 < b.d2; });
    return exact_[k - 1].d2 <= complete_below;
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
    const double brute_cost = double(num_atoms) * stride_ * (num_rows >= 16 ? 0.42 : num_rows >= 3 ? 0.6 : 0.9);
    if (pruned_cost_ > brute_cost) {
        drop_index();
        rows_to_wait_ = std::min(std::max(kFirstWait, 2 * rows_to_wait_), kLongestWait);
    } else if (pruned_cost_ < 0.5 * brute_cost) {
        rows_to_wait_ = 0;
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

// ---- state ----

void Engine::load(const float* atoms, const double* counts, const int64_t* born, int64_t n, int64_t observed, double scale,
                  double biased, double weight) {
    drop_index();
    rows_to_wait_ = 0;
    num_atoms = n;
    for (int64_t slot = 0; slot < n; ++slot)
        std::copy(atoms + slot * settings_.dim, atoms + (slot + 1) * settings_.dim, atoms_.data() + slot * stride_);
    std::copy(counts, counts + n, log_counts.begin());
    std::copy(born, born + n, births.begin());
    num_observed = observed;
    log_scale = scale;
    d2_biased = biased;
    d2_weight = weight;
    removal_.rebuild(log_counts.data(), n);
}

void Engine::copy_atoms(float* out) const {
    for (int64_t slot = 0; slot < num_atoms; ++slot) std::copy(row(slot), row(slot) + settings_.dim, out + slot * settings_.dim);
}

size_t Engine::bytes() const {
    return size_t(settings_.size * stride_) * sizeof(float) + log_counts.capacity() * sizeof(double) + births.capacity() * sizeof(int64_t) +
           changed_at_.capacity() * sizeof(int64_t) + removal_.bytes() + (index_ ? index_->bytes() : 0);
}

}  // namespace softcount
