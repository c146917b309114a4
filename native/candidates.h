// The atoms a float32 scan could not rule out, and how wrong float32 may be.
//
// A filter distance f of float32 inputs is a sum of non-negative terms, so |f − d²| ≤ κ·d² + a
// with κ = (D + 8)·2⁻²³ and a = D·2⁻¹²⁶ (underflow). If F is the k-th smallest f, every one of the
// k nearest has f ≤ F(1 + 3κ) + 3a. An infinite F (overflow) rules out nothing.
#pragma once

#include <cmath>
#include <limits>
#include <vector>

#include "kernels.h"

namespace softcount {

struct Margin {
    float relative, absolute;

    explicit Margin(int dim)
        : relative(float(dim + 8) * 0x1p-23f), absolute(float(dim) * std::numeric_limits<float>::min()) {}

    // The largest filter value that an atom within true squared distance d2 can have, and then some.
    float above(float d2) const { return d2 * (1.0f + 3.0f * relative) + 3.0f * absolute; }

    // A true squared distance that every atom with a filter value above f exceeds.
    double below(float f) const { return (double(f) - 2.0 * absolute) / (1.0 + 2.0 * relative); }
};

class Candidates : public Queue {
public:
    // Keeps at least the `keep` nearest atoms and all within squared distance `ball`.
    void start(int keep, double ball, const Margin& margin);

    // Lowers the threshold to what is still needed and drops what lies above it.
    void tighten();

    // Takes over what another scan of other atoms found.
    void merge(const Candidates& other);

    int num_kept() const { return keep_; }
    bool is_exhaustive() const { return threshold == std::numeric_limits<float>::infinity(); }

private:
    static void double_or_drop(Queue* queue);
    void tighten_roughly();
    void lower(float d2);

    std::vector<Candidate> storage_;
    int keep_ = 0;
    float ball_ = 0.0f;
    Margin margin_{1};
};

}  // namespace softcount
