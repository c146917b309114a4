#include "engine.h"

#include <algorithm>
#include <cmath>

namespace softcount {

namespace {
constexpr double kFoldBelow = -1000.0;  // FOLD_BELOW of recode.py
constexpr double kSmallestD2 = 1e-90;   // SMALLEST_D2 of kernels.py: a bandwidth below is 0
constexpr int kSpare = 16;              // neighbours kept beyond k, for atoms that change within a batch
constexpr double kBallGrowth = 1.05;    // how much d²_ema may grow within a batch before rows are scanned again
constexpr int64_t kChunk = 256;         // rows per snapshot
constexpr int64_t kForeseeFrom = 8;     // smaller batches look for an heir when they need one
constexpr double kWorthForeseeing = 0.3;  // a search alone costs about three times its share in a batch
constexpr int64_t kForeseeAgain = 16;   // batches after which it is tried anyway
constexpr size_t kVictims = 4;          // victims of one pass of their own
constexpr int64_t kForesight = 64;      // rows whose victims are guessed at once; every change makes guesses worse

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
    const int64_t num = last - first;
    const int keep = settings_.neighbours + (num > 1 ? kSpare : 0);
    const int64_t num_hits = work.num_foreseen;
    num_guessed_ = 0;
    if (num >= kForeseeFrom && is_worth_foreseeing()) foresee_victims(first, std::min(last, first + kForesight), uniforms, kChunk);
    scan_many(rows + first * stride_, num, keep, d2_ema() * (num > 1 ? kBallGrowth : 1.0), victims_, snapshot_);
    if (near_victims_.size() < victims_.size()) near_victims_.resize(victims_.size());
    for (size_t j = 0; j < victims_.size(); ++j) std::swap(near_victims_[j], snapshot_[size_t(num) + j]);
    changed_.clear();
    ++batch_id_;
    for (int64_t i = first; i < last; ++i) {
        const float* e = rows + i * stride_;
        batch_ = {uniforms, i, last};
        if (!refine_snapshot(e, snapshot_[size_t(i - first)], neighbours_among(num_atoms), d2_ema())) {
            search(e, neighbours_among(num_atoms), d2_ema(), single_);
            refine(e, single_);
            work.num_rescans += 1;
        }
        learn(e, uniforms[2 * i], uniforms[2 * i + 1], out, i);
    }
    batch_ = {};
    victims_.clear();
    if (num_guessed_ > 0) foreseen_rate_ += (double(work.num_foreseen - num_hits) / double(num_guessed_) - foreseen_rate_) / 8.0;
    work.num_rows_brute += num;
    rows_since_build_ += num;
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
    const bool is_zero = bandwidth < kSmallestD2;
    scratch_.clear();
    for (const Exact& x : exact_)
        if (is_zero ? x.d2 == 0.0 : x.d2 < bandwidth) scratch_.push_back(x);
    std::sort(scratch_.begin(), scratch_.end(), [](const Exact& a, const Exact& b) { return a.slot < b.slot; });
    double sum = 0.0;
    for (const Exact& x : scratch_) {
        const double weight = is_zero ? 1.0 : 1.0 / (1.0 + x.d2 / width);
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

// Guesses whom the rows of a batch will remove: as if each lucky coin inserted and no count changed otherwise.
void Engine::foresee_victims(int64_t first, int64_t last, const double* uniforms, size_t most) {
    const size_t num_before = victims_.size();
    double scale = log_scale;
    for (int64_t i = first; i < last && victims_.size() < most; ++i) {
        scale += settings_.log_discount;
        if (uniforms[2 * i] >= settings_.insertion_probability) continue;
        victims_.push_back(int32_t(removal_.choose(uniforms[2 * i + 1])));
        removal_.set(victims_.back(), -scale);
    }
    for (int32_t victim : victims_) removal_.set(victim, log_counts[size_t(victim)]);
    num_guessed_ += int64_t(victims_.size() - num_before);
}

bool Engine::is_worth_foreseeing() const {
    return num_atoms == settings_.size && num_atoms > 1 &&
           (foreseen_rate_ > kWorthForeseeing || batch_id_ % kForeseeAgain == 0);
}

// Takes a victim's candidates from a scan of this batch; false if it was not foreseen or changes make them doubtful.
bool Engine::find_foreseen(int32_t victim) {
    const auto at = std::find(victims_.begin(), victims_.end(), victim);
    if (at == victims_.end() || changed_at_[size_t(victim)] == batch_id_) return false;
    return refine_snapshot(row(victim), near_victims_[size_t(at - victims_.begin())], 2, 0.0);
}

// Scans for the atoms near this victim and, in the same pass, near the next that are foreseen now.
void Engine::scan_victims(int32_t victim) {
    victims_.assign(1, victim);
    if (is_worth_foreseeing()) {
        removal_.set(victim, -log_scale);
        foresee_victims(batch_.at + 1, batch_.last, batch_.uniforms, kVictims);
    }
    scan_many(nullptr, 0, 0, 0.0, victims_, near_victims_);
}

// The nearest other atom, of equals the lowest slot.
int32_t Engine::heir_of(int32_t victim) {
    const float* e = row(victim);
    work.num_heirs += 1;
    if (batch_.uniforms == nullptr) {
        search(e, 2, 0.0, single_);
        refine(e, single_);
    } else if (find_foreseen(victim)) {
        work.num_foreseen += 1;
    } else {
        scan_victims(victim);
        refine(e, near_victims_[0]);
    }
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
    if (index_ || changed_at_[size_t(slot)] == batch_id_) return;  // only the brute path looks back
    changed_at_[size_t(slot)] = batch_id_;
    changed_.push_back(slot);
}

void Engine::score(const float* embeddings, int64_t num, double* rewards) {
    padded_.assign(size_t(num * stride_), 0.0f);
    for (int64_t i = 0; i < num; ++i)
        std::copy(embeddings + i * settings_.dim, embeddings + (i + 1) * settings_.dim, padded_.data() + i * stride_);
    for (int64_t at = 0; at < num; at += kChunk) {
        const int64_t count = std::min(kChunk, num - at);
        if (!index_) scan_many(padded_.data() + at * stride_, count, 0, d2_ema(), {}, snapshot_);
        for (int64_t i = 0; i < count; ++i) {
            const float* e = padded_.data() + (at + i) * stride_;
            if (index_) search(e, 0, d2_ema(), single_);
            refine(e, index_ ? single_ : snapshot_[size_t(i)]);
            rewards[at + i] = reward(soft_count());
        }
    }
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
