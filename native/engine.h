// Algorithm 1 on one state with two exact ways to find the atoms near an embedding.
//
// `softcount/memory/recode.py` is the specification, line by line; the decisions and the float64
// arithmetic here follow it to the bit. A search only proposes candidates; `refine` computes their
// float64 distances, and `learn` knows nothing of how they were found.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "groups.h"
#include "removal.h"

namespace softcount {

struct Settings {
    int64_t size;
    int dim, neighbours, num_warmup;
    double insertion_probability, far_tolerance, d2_step, reward_constant, kernel_epsilon, log_discount;
    int removal_power;  // p of P(j) ∝ 1/c_j^p, 0 for the smallest count
    int num_threads;
};

// Where observe writes what happened to each row; arrays of length B.
struct Outcome {
    double *reward, *soft_count, *d2_nearest;
    int64_t* nearest;
    bool *is_far, *is_inserted;
    int64_t *slot, *merged_into;
};

// Counts of what was done, for the choice of path and for reports. Not part of the state.
struct Work {
    int64_t num_rows_brute = 0, num_rows_pruned = 0, num_scanned_brute = 0, num_rescans = 0, num_heirs = 0;
    int64_t num_foreseen = 0, num_builds = 0;
    SearchWork pruned;
};

enum class Path { automatic, brute, pruned };

class Engine {
public:
    explicit Engine(const Settings& settings, bool only_baseline);

    void observe(const float* embeddings, int64_t num, const double* uniforms, const Outcome& out);
    void score(const float* embeddings, int64_t num, double* rewards);

    void set_path(Path path);
    void load(const float* atoms, const double* log_counts, const int64_t* births, int64_t n, int64_t num_observed,
              double log_scale, double d2_biased, double d2_weight);
    void copy_atoms(float* out) const;

    const Settings& settings() const { return settings_; }
    const char* kernels_name() const { return kernels_.name; }
    bool is_pruned() const { return index_ != nullptr; }
    size_t bytes() const;

    mutable std::mutex mutex;
    Work work;
    int64_t num_atoms = 0, num_observed = 0;
    double log_scale = 0.0, d2_biased = 0.0, d2_weight = 0.0;
    std::vector<double> log_counts;
    std::vector<int64_t> births;
    double d2_ema() const { return d2_weight > 0 ? d2_biased / d2_weight : 0.0; }

private:
    struct Exact {
        double d2;
        int32_t slot;
    };

    const float* row(int64_t slot) const { return atoms_.data() + slot * stride_; }
    void observe_brute(const float* rows, int64_t first, int64_t last, const double* uniforms, const Outcome& out);
    void observe_pruned(const float* rows, int64_t first, int64_t last, const double* uniforms, const Outcome& out);
    void learn(const float* e, double u, double v, const Outcome& out, int64_t at);
    int neighbours_among(int64_t n) const;
    double mean_of_nearest();
    double soft_count();
    double reward(double soft_count) const;
    void discount();
    int64_t make_room(double v, int64_t* merged_into);
    void foresee_victims(int64_t first, int64_t last, const double* uniforms, size_t most);
    bool is_worth_foreseeing() const;
    bool find_foreseen(int32_t victim);
    void scan_victims(int32_t victim);
    int32_t heir_of(int32_t victim);
    void write(int32_t slot, const float* e);
    void absorb(int32_t star, const float* e);
    void set_log_count(int64_t slot, double value);

    void scan_one(const float* e, Candidates& found);
    void scan_many(const float* rows, int64_t num, int keep, double ball, const std::vector<int32_t>& others,
                   std::vector<Candidates>& into);
    void search(const float* e, int keep, double ball, Candidates& found);
    void refine(const float* e, const Candidates& found);
    void measure(const float* e);
    bool refine_snapshot(const float* e, const Candidates& found, int keep, double ball);
    void mark_changed(int32_t slot);

    void note_search(const SearchWork& one);
    void choose_path(int64_t num_rows);
    void drop_index();
    bool build_index();
    bool is_huge(const float* values, int64_t count) const;

    Settings settings_;
    const Kernels& kernels_;
    int stride_;
    Margin margin_;
    Floats atoms_;  // size × stride, rows padded with zeros
    RemovalTree removal_;
    std::unique_ptr<GroupIndex> index_;

    Path path_ = Path::automatic;
    double pruned_cost_ = 0.0;        // moving average of the pruned search's work per row, in float operations
    int64_t rows_since_build_ = 0;    // pruned: rows judged; brute: rows waited
    int64_t rows_to_wait_ = 0;

    std::vector<float> padded_, transposed_, packed_;
    std::vector<Exact> exact_, scratch_;
    std::vector<int32_t> slots_;
    std::vector<double> d2_;
    Candidates single_;
    std::vector<Candidates> snapshot_;
    std::vector<int32_t> changed_;
    std::vector<int64_t> changed_at_;
    int64_t batch_id_ = 0;
    struct {
        const double* uniforms = nullptr;
        int64_t at = 0, last = 0;
    } batch_;                         // where the brute path is in its batch, nothing outside
    std::vector<int32_t> victims_;    // atoms that rows of this batch may remove, whose neighbours are known
    std::vector<Candidates> near_victims_;
    int64_t num_guessed_ = 0;
    double foreseen_rate_ = 1.0;      // moving average of the fraction of guesses that were of use
};

}  // namespace softcount
