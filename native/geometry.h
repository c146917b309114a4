// Directions of largest spread, for building the groups. Nothing here decides a result:
// a bad basis only makes the search slower.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

namespace softcount {

// Rows to look at: all, or an even sample of them, minus their centre.
inline std::vector<float> centred_sample(const float* rows, int stride, const int32_t* slots, int64_t count, int most,
                                         const float* centre) {
    const int64_t num = std::min<int64_t>(count, most);
    std::vector<float> sample(size_t(num * stride));
    for (int64_t s = 0; s < num; ++s) {
        const float* row = rows + int64_t(slots[s * count / num]) * stride;
        for (int i = 0; i < stride; ++i) sample[size_t(s * stride + i)] = row[i] - centre[i];
    }
    return sample;
}

inline float dot(const float* a, const float* b, int n) {
    float lanes[8] = {};
    for (int i = 0; i < n; i += 8)
        for (int l = 0; l < 8; ++l) lanes[l] += a[i + l] * b[i + l];
    return ((lanes[0] + lanes[1]) + (lanes[2] + lanes[3])) + ((lanes[4] + lanes[5]) + (lanes[6] + lanes[7]));
}

// Makes `count` rows of length n orthonormal (Gram-Schmidt in float64, twice); rows without a new direction become 0.
inline void orthonormalise(float* rows, int count, int n) {
    std::vector<double> work(size_t(count) * size_t(n));
    for (int j = 0; j < count; ++j) {
        double* v = work.data() + int64_t(j) * n;
        double before = 0.0, norm2 = 0.0;
        for (int i = 0; i < n; ++i) {
            v[i] = rows[int64_t(j) * n + i];
            before += v[i] * v[i];
        }
        for (int pass = 0; pass < 2; ++pass)
            for (int k = 0; k < j; ++k) {
                const double* w = work.data() + int64_t(k) * n;
                double inner = 0.0;
                for (int i = 0; i < n; ++i) inner += v[i] * w[i];
                for (int i = 0; i < n; ++i) v[i] -= inner * w[i];
            }
        for (int i = 0; i < n; ++i) norm2 += v[i] * v[i];
        const double scale = norm2 > 1e-12 * before && norm2 > 1e-200 ? 1.0 / std::sqrt(norm2) : 0.0;
        for (int i = 0; i < n; ++i) {
            v[i] *= scale;
            rows[int64_t(j) * n + i] = float(v[i]);
        }
    }
}

// The `count` leading principal directions of centred rows, by subspace iteration; `basis` is count × stride.
inline void principal_directions(const std::vector<float>& sample, int stride, int count, int iterations, float* basis) {
    const int64_t num = int64_t(sample.size()) / stride;
    for (int j = 0; j < count; ++j) {
        const float* start = sample.data() + (num * (2 * j + 1) / (2 * count)) * stride;
        std::copy(start, start + stride, basis + int64_t(j) * stride);
    }
    orthonormalise(basis, count, stride);
    std::vector<float> next(size_t(count) * size_t(stride));
    for (int iteration = 0; iteration < iterations; ++iteration) {
        std::fill(next.begin(), next.end(), 0.0f);
        for (int64_t s = 0; s < num; ++s) {
            const float* x = sample.data() + s * stride;
            for (int j = 0; j < count; ++j) {
                const float y = dot(x, basis + int64_t(j) * stride, stride);
                float* sum = next.data() + int64_t(j) * stride;
                for (int i = 0; i < stride; ++i) sum[i] += y * x[i];
            }
        }
        std::copy(next.begin(), next.end(), basis);
        orthonormalise(basis, count, stride);
    }
}

}  // namespace softcount
