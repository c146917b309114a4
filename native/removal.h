// Which atom makes room (Alg. 1, L11): P(j) ∝ 1/c_j², P(j) ∝ 1/c_j, or the smallest count.
//
// Weights exp(−p·log c) of long unvisited atoms leave floating point, so a node of the tree holds
// its sum as mantissa · 2^exponent: no exp and no overflow above the leaves. Sampling inverts the
// cumulative weight in slot order. For the smallest count a node holds the slot that wins.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

namespace softcount {

class RemovalTree {
public:
    // power is p; 0 stands for "smallest".
    RemovalTree(int64_t size, int power) : power_(power) {
        while (leaves_ < size) leaves_ *= 2;
        nodes_.assign(size_t(2 * leaves_), Node{});
    }

    void rebuild(const double* log_counts, int64_t n) {
        nodes_.assign(nodes_.size(), Node{});
        for (int64_t slot = 0; slot < n; ++slot) nodes_[size_t(leaves_ + slot)] = leaf(log_counts[slot], slot);
        for (int64_t i = leaves_ - 1; i > 0; --i) nodes_[size_t(i)] = combine(nodes_[size_t(2 * i)], nodes_[size_t(2 * i + 1)]);
    }

    void set(int64_t slot, double log_count) {
        int64_t i = leaves_ + slot;
        nodes_[size_t(i)] = leaf(log_count, slot);
        for (i /= 2; i > 0; i /= 2) nodes_[size_t(i)] = combine(nodes_[size_t(2 * i)], nodes_[size_t(2 * i + 1)]);
    }

    // Returns the victim for a uniform v in [0, 1).
    int64_t choose(double v) const {
        if (power_ == 0) return nodes_[1].exponent;
        int64_t i = 1;
        double target = v * nodes_[1].value;
        while (i < leaves_) {
            const Node &left = nodes_[size_t(2 * i)], &right = nodes_[size_t(2 * i + 1)];
            const int64_t exponent = nodes_[size_t(i)].exponent;
            const double left_weight = scaled(left, exponent);
            const bool goes_left = target < left_weight || scaled(right, exponent) == 0.0;
            if (!goes_left) target -= left_weight;
            i = 2 * i + (goes_left ? 0 : 1);
            target = std::ldexp(target, int(exponent - nodes_[size_t(i)].exponent));
        }
        return i - leaves_;
    }

    size_t bytes() const { return nodes_.capacity() * sizeof(Node); }

private:
    struct Node {
        double value = 0.0;          // mantissa of the sum; or the smallest log count
        int64_t exponent = kEmpty;   // its power of two; or the slot that has it
    };
    static constexpr int64_t kEmpty = -1;

    Node leaf(double log_count, int64_t slot) const {
        if (power_ == 0) return {log_count, slot};
        // x = k·ln 2 + rest, with ln 2 in two parts so that k·ln2_high is exact.
        constexpr double ln2_high = 6.93147180369123816490e-01, ln2_low = 1.90821492927058770002e-10;
        const double x = -power_ * log_count;
        const double k = std::nearbyint(x / 0.6931471805599453);
        return {std::exp((x - k * ln2_high) - k * ln2_low), int64_t(k)};
    }

    static double scaled(const Node& node, int64_t exponent) {
        if (node.value == 0.0 || node.exponent == exponent) return node.value;
        const int64_t shift = node.exponent - exponent;
        if (shift < -1000) return 0.0;
        return node.value * power_of_two(shift);
    }

    // 2^shift for shift in [−1000, 0], without a call.
    static double power_of_two(int64_t shift) {
        const uint64_t bits = uint64_t(1023 + shift) << 52;
        double value;
        std::memcpy(&value, &bits, sizeof value);
        return value;
    }

    Node combine(const Node& a, const Node& b) const {
        if (power_ == 0) {
            if (b.exponent < 0) return a;
            if (a.exponent < 0) return b;
            return b.value < a.value ? b : a;
        }
        if (b.value == 0.0) return a;
        if (a.value == 0.0) return b;
        const int64_t exponent = a.exponent > b.exponent ? a.exponent : b.exponent;
        return {scaled(a, exponent) + scaled(b, exponent), exponent};
    }

    int power_;
    int64_t leaves_ = 1;
    std::vector<Node> nodes_;
};

}  // namespace softcount
