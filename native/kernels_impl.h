// The kernels themselves, in vectors of eight floats (GCC and Clang extension). Included by
// kernels_avx2.cpp and kernels_baseline.cpp, which set KERNELS_NAME. No templates of the
// standard library here: a shared inline function compiled with AVX2 could be linked into the baseline.

#include <cmath>
#include <cstring>

#include "kernels.h"

#if defined(__AVX2__) && defined(__FMA__)
#include <immintrin.h>
#endif

namespace softcount {
namespace {

typedef float F8 __attribute__((vector_size(32)));
typedef int32_t I8 __attribute__((vector_size(32)));

inline F8 load(const float* p) {
    F8 v;
    std::memcpy(&v, p, sizeof v);
    return v;
}

inline void store(float* p, F8 v) { std::memcpy(p, &v, sizeof v); }

inline F8 splat(float x) { return F8{x, x, x, x, x, x, x, x}; }

// c + a²
inline F8 add_square(F8 c, F8 a) {
#if defined(__AVX2__) && defined(__FMA__)
    return (F8)_mm256_fmadd_ps((__m256)a, (__m256)a, (__m256)c);
#else
    return c + a * a;
#endif
}

inline F8 add_product(F8 c, F8 a, F8 b) {
#if defined(__AVX2__) && defined(__FMA__)
    return (F8)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
#else
    return c + a * b;
#endif
}

// Bit l is set where a[l] <= b[l].
inline unsigned mask_le(F8 a, F8 b) {
#if defined(__AVX2__) && defined(__FMA__)
    return (unsigned)_mm256_movemask_ps(_mm256_cmp_ps((__m256)a, (__m256)b, _CMP_LE_OQ));
#else
    I8 is_le = a <= b;
    unsigned mask = 0;
    for (int l = 0; l < 8; ++l) mask |= (unsigned)(is_le[l] & 1) << l;
    return mask;
#endif
}

// Lane l of the result is the sum of the eight lanes of v[l].
inline F8 sums_of(const F8* v) {
#if defined(__AVX2__) && defined(__FMA__)
    __m256 a = _mm256_hadd_ps((__m256)v[0], (__m256)v[1]), b = _mm256_hadd_ps((__m256)v[2], (__m256)v[3]);
    __m256 c = _mm256_hadd_ps((__m256)v[4], (__m256)v[5]), d = _mm256_hadd_ps((__m256)v[6], (__m256)v[7]);
    __m256 ab = _mm256_hadd_ps(a, b), cd = _mm256_hadd_ps(c, d);
    return (F8)_mm256_add_ps(_mm256_permute2f128_ps(ab, cd, 0x20), _mm256_permute2f128_ps(ab, cd, 0x31));
#else
    F8 sums;
    for (int l = 0; l < 8; ++l) {
        float s = 0.0f;
        for (int i = 0; i < 8; ++i) s += v[l][i];
        sums[l] = s;
    }
    return sums;
#endif
}

inline F8 row_partial(const float* row, const float* e, int stride) {
    F8 even = splat(0.0f), odd = splat(0.0f);
    int i = 0;
    for (; i + 16 <= stride; i += 16) {
        even = add_square(even, load(row + i) - load(e + i));
        odd = add_square(odd, load(row + i + 8) - load(e + i + 8));
    }
    if (i < stride) even = add_square(even, load(row + i) - load(e + i));
    return even + odd;
}

void tile_distances(const float* tiles, int num_tiles, int dims, const float* e, float* d2) {
    const int64_t step = (int64_t)dims * kLanes;
    int t = 0;
    for (; t + 4 <= num_tiles; t += 4, tiles += 4 * step) {
        F8 a = splat(0.0f), b = a, c = a, d = a;
        for (int i = 0; i < dims; ++i) {
            const F8 x = splat(e[i]);
            const float* p = tiles + i * kLanes;
            a = add_square(a, load(p) - x);
            b = add_square(b, load(p + step) - x);
            c = add_square(c, load(p + 2 * step) - x);
            d = add_square(d, load(p + 3 * step) - x);
        }
        store(d2 + t * kLanes, a);
        store(d2 + (t + 1) * kLanes, b);
        store(d2 + (t + 2) * kLanes, c);
        store(d2 + (t + 3) * kLanes, d);
    }
    for (; t < num_tiles; ++t, tiles += step) {
        F8 a = splat(0.0f);
        for (int i = 0; i < dims; ++i) a = add_square(a, load(tiles + i * kLanes) - splat(e[i]));
        store(d2 + t * kLanes, a);
    }
}

int select(const float* d2, const float* radii, int num, float shrink, float reach, int32_t* groups, float* bounds) {
    int count = 0;
    for (int g = 0; g < num; g += kLanes) {
#if defined(__AVX2__) && defined(__FMA__)
        const F8 root = (F8)_mm256_sqrt_ps((__m256)load(d2 + g));
#else
        F8 root = load(d2 + g);
        for (int l = 0; l < kLanes; ++l) root[l] = std::sqrt(root[l]);
#endif
        const F8 bound = root * splat(shrink) - load(radii + g);
        unsigned mask = mask_le(bound, splat(reach));
        if (num - g < kLanes) mask &= (1u << (num - g)) - 1;
        for (; mask != 0; mask &= mask - 1) {
            const int l = __builtin_ctz(mask);
            groups[count] = g + l;
            bounds[count++] = bound[l];
        }
    }
    return count;
}

void row_distances(const float* rows, int stride, const float* e, const int32_t* slots, int count, float* d2) {
    F8 partial[8];
    for (int first = 0; first < count; first += 8) {
        const int num = count - first < 8 ? count - first : 8;
        for (int l = 0; l < 8 && first + 8 + l < count; ++l) {
            const char* next = (const char*)(rows + (int64_t)slots[first + 8 + l] * stride);
            __builtin_prefetch(next);
            __builtin_prefetch(next + 64);
        }
        for (int l = 0; l < num; ++l) partial[l] = row_partial(rows + (int64_t)slots[first + l] * stride, e, stride);
        for (int l = num; l < 8; ++l) partial[l] = splat(0.0f);
        const F8 sums = sums_of(partial);
        for (int l = 0; l < num; ++l) d2[first + l] = sums[l];
    }
}

inline void push_lanes(Queue* queue, F8 d2, unsigned mask, int64_t slot) {
    float values[8];
    store(values, d2);
    for (; mask != 0; mask &= mask - 1) {
        const int l = __builtin_ctz(mask);
        if (values[l] <= queue->threshold) queue->push(values[l], (int32_t)(slot + l));
    }
}

void scan_rows(const float* rows, int64_t first, int64_t last, int stride, const float* e, Queue* queue) {
    F8 partial[8];
    for (int64_t slot = first; slot < last; slot += 8) {
        const int num = last - slot < 8 ? (int)(last - slot) : 8;
        const float* row = rows + slot * stride;
        for (int l = 0; l < num; ++l, row += stride) {
            __builtin_prefetch((const char*)row + 4096);
            __builtin_prefetch((const char*)row + 4096 + 64);
            partial[l] = row_partial(row, e, stride);
        }
        for (int l = num; l < 8; ++l) partial[l] = splat(0.0f);
        const F8 d2 = sums_of(partial);
        const unsigned mask = mask_le(d2, splat(queue->threshold)) & ((1u << num) - 1);
        if (mask != 0) push_lanes(queue, d2, mask, slot);
    }
}

// Transposes `num` rows into tiles of 16: packed[tile][dim][16]; lanes without a row repeat the last one.
void pack(const float* rows, int num, int stride, float* packed) {
    for (int t = 0; t * 16 < num; ++t) {
        float* tile = packed + (int64_t)t * stride * 16;
        for (int half = 0; half < 2; ++half) {
            const float* p[8];
            for (int l = 0; l < 8; ++l) {
                const int r = t * 16 + half * 8 + l;
                p[l] = rows + (int64_t)(r < num ? r : num - 1) * stride;
            }
            float* out = tile + half * 8;
            for (int i = 0; i < stride; i += 8, out += 8 * 16) {
#if defined(__AVX2__) && defined(__FMA__)
                __m256 a[8], b[8];
                for (int l = 0; l < 4; ++l) {
                    a[l] = _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(p[l] + i)),
                                                _mm_loadu_ps(p[l + 4] + i), 1);
                    a[l + 4] = _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(p[l] + i + 4)),
                                                    _mm_loadu_ps(p[l + 4] + i + 4), 1);
                }
                for (int h = 0; h < 8; h += 4) {
                    __m256 lo01 = _mm256_unpacklo_ps(a[h], a[h + 1]), hi01 = _mm256_unpackhi_ps(a[h], a[h + 1]);
                    __m256 lo23 = _mm256_unpacklo_ps(a[h + 2], a[h + 3]), hi23 = _mm256_unpackhi_ps(a[h + 2], a[h + 3]);
                    b[h] = _mm256_shuffle_ps(lo01, lo23, 0x44);
                    b[h + 1] = _mm256_shuffle_ps(lo01, lo23, 0xEE);
                    b[h + 2] = _mm256_shuffle_ps(hi01, hi23, 0x44);
                    b[h + 3] = _mm256_shuffle_ps(hi01, hi23, 0xEE);
                }
                for (int j = 0; j < 8; ++j) _mm256_storeu_ps(out + j * 16, b[j]);
#else
                for (int j = 0; j < 8; ++j)
                    for (int l = 0; l < 8; ++l) out[j * 16 + l] = p[l][i + j];
#endif
            }
        }
    }
}

// Q queries meet a packed block, T tiles of 16 atoms at a time: 2·Q·T sums stay in registers.
template <int Q, int T>
inline void meet(const float* packed, int num, int stride, const float* e, Queue* const* queue, int64_t slot) {
    for (int t = 0; t * 16 < num; t += T) {
        const float* tiles = packed + (int64_t)t * stride * 16;
        F8 a[T][Q], b[T][Q];
        for (int s = 0; s < T; ++s)
            for (int j = 0; j < Q; ++j) a[s][j] = b[s][j] = splat(0.0f);
        for (int i = 0; i < stride; ++i)
            for (int s = 0; s < T; ++s) {
                const float* tile = tiles + ((int64_t)s * stride + i) * 16;
                const F8 x = load(tile), y = load(tile + 8);
                for (int j = 0; j < Q; ++j) {
                    const F8 z = splat(e[i * kQueryBlock + j]);
                    a[s][j] = add_square(a[s][j], x - z);
                    b[s][j] = add_square(b[s][j], y - z);
                }
            }
        for (int s = 0; s < T && (t + s) * 16 < num; ++s) {
            const int left = num - (t + s) * 16;
            const int64_t at = slot + (t + s) * 16;
            const unsigned valid = left >= 16 ? 0xFFFFu : (1u << left) - 1;
            for (int j = 0; j < Q; ++j) {
                const F8 limit = splat(queue[j]->threshold);
                const unsigned mask = (mask_le(a[s][j], limit) | mask_le(b[s][j], limit) << 8) & valid;
                if (mask & 0xFF) push_lanes(queue[j], a[s][j], mask & 0xFF, at);
                if (mask >> 8) push_lanes(queue[j], b[s][j], mask >> 8, at + 8);
            }
        }
    }
}

void scan_batch(const float* rows, int64_t first, int64_t last, int stride, const float* queries, int num_queries,
                Queue* const* queues, float* packed) {
    const int block = stride <= 128 ? 64 : 16;
    for (int64_t slot = first; slot < last; slot += block) {
        const int num = last - slot < block ? (int)(last - slot) : block;
        pack(rows + slot * stride, num, stride, packed);
        for (int q = 0; q < num_queries; q += kQueryBlock) {
            const float* e = queries + (int64_t)q * stride;
            const int left = num_queries - q;
            if (left == 1 && block == 64)
                meet<1, 4>(packed, num, stride, e, queues + q, slot);
            else if (left <= 3 && block == 64)
                meet<3, 2>(packed, num, stride, e, queues + q, slot);
            else if (left <= 4)
                meet<4, 1>(packed, num, stride, e, queues + q, slot);
            else
                meet<kQueryBlock, 1>(packed, num, stride, e, queues + q, slot);
        }
    }
}

void project(const float* basis, int stride, const float* centre, const float* e, float* y) {
    F8 sums[kProjected];
    for (int j = 0; j < kProjected; ++j) sums[j] = splat(0.0f);
    for (int i = 0; i < stride; i += 8) {
        const F8 difference = load(e + i) - load(centre + i);
        for (int j = 0; j < kProjected; ++j)
            sums[j] = add_product(sums[j], load(basis + (int64_t)j * stride + i), difference);
    }
    store(y, sums_of(sums));
}

// Bit l is set where box l, from low to high in steps, lies within `limit` of the point: squared distance in units
// of 2¹⁶, each term rounded down. An atom is a box of one point.
inline unsigned near_boxes(const int16_t* low, const int16_t* high, const int16_t* point, int limit) {
#if defined(__AVX2__) && defined(__FMA__)
    __m256i sum = _mm256_setzero_si256();
    for (int j = 0; j < kProjected; ++j) {
        const __m256i x = _mm256_set1_epi16(point[j]);
        const __m256i below = _mm256_sub_epi16(_mm256_loadu_si256((const __m256i*)(low + j * 16)), x);
        const __m256i above = _mm256_sub_epi16(x, _mm256_loadu_si256((const __m256i*)(high + j * 16)));
        const __m256i outside = _mm256_max_epi16(_mm256_max_epi16(below, above), _mm256_setzero_si256());
        sum = _mm256_adds_epu16(sum, _mm256_mulhi_epi16(outside, outside));
    }
    const __m256i most = _mm256_set1_epi16((int16_t)(uint16_t)limit);
    const __m256i is_near = _mm256_cmpeq_epi16(_mm256_max_epu16(sum, most), most);
    const __m256i bytes = _mm256_permute4x64_epi64(_mm256_packs_epi16(is_near, is_near), 0xD8);
    return (unsigned)_mm256_movemask_epi8(bytes) & 0xFFFF;
#else
    int32_t sum[16] = {};
    for (int j = 0; j < kProjected; ++j)
        for (int l = 0; l < 16; ++l) {
            const int32_t below = low[j * 16 + l] - point[j], above = point[j] - high[j * 16 + l];
            const int32_t outside = below > above ? (below > 0 ? below : 0) : (above > 0 ? above : 0);
            sum[l] += outside * outside >> 16;
        }
    unsigned mask = 0;
    for (int l = 0; l < 16; ++l) mask |= (unsigned)(sum[l] <= limit || limit == 65535) << l;
    return mask;
#endif
}

int scan_group(const GroupView& group, const float* y, float reach, uint64_t done, int32_t* out,
               int64_t* num_scanned) {
    const F8 low = load(group.box) - load(y), high = load(y) - load(group.box + kProjected), zero = splat(0.0f);
    F8 outside = low > high ? low : high;
    outside = outside > zero ? outside : zero;
    outside *= outside;
    float to_box = 0.0f;
    for (int j = 0; j < kProjected; ++j) to_box += outside[j];
    const float reach2 = reach * reach * 1.00001f;
    if (to_box > reach2) return 0;

    // Inside the box the distance left is √(reach² − to_box²): coordinates of atoms lie within it.
    int16_t point[kProjected];
    to_steps(group.frame, group.most, group.scale, y, point);
    const float left = std::sqrt(reach2 - to_box * 0.99999f) * group.scale + 4.0f;
    const float units = left * left * (1.00001f / 65536.0f);
    const int limit = units < 65535.0f ? (int)units : 65535;

    uint64_t visit = 0;
    for (int b = 0; b < group.num_buckets; b += 16)
        visit |= (uint64_t)near_boxes(group.bucket_low + b * kProjected, group.bucket_high + b * kProjected, point, limit) << b;
    visit &= ~done & ((1ull << group.num_buckets) - 1);
    for (uint64_t rest = visit; rest != 0; rest &= rest - 1) {
        const char* steps = (const char*)(group.steps + (int64_t)__builtin_ctzll(rest) * kBucket * kProjected);
        for (int line = 0; line < 4; ++line) __builtin_prefetch(steps + line * 64);
        __builtin_prefetch(group.slots + __builtin_ctzll(rest) * kBucket);
    }
    int count = 0;
    for (uint64_t rest = visit; rest != 0; rest &= rest - 1) {
        const int b = __builtin_ctzll(rest);
        const int16_t* steps = group.steps + (int64_t)b * kBucket * kProjected;
        *num_scanned += group.bucket_size[b];
        unsigned mask = near_boxes(steps, steps, point, limit) & ((1u << group.bucket_size[b]) - 1);
        for (; mask != 0; mask &= mask - 1) out[count++] = group.slots[b * kBucket + __builtin_ctz(mask)];
    }
    return count;
}

void exact_distances(const float* rows, int stride, int dim, const float* e, const int32_t* slots, int count,
                     double* d2) {
    int first = 0;
    for (; first + 4 <= count; first += 4) {
        const float* p[4];
        for (int l = 0; l < 4; ++l) p[l] = rows + (int64_t)slots[first + l] * stride;
        double sum[4] = {0.0, 0.0, 0.0, 0.0};
        int i = 0;
#if defined(__AVX2__) && defined(__FMA__)
        __m256d total = _mm256_setzero_pd();
        for (; i + 4 <= dim; i += 4) {
            __m128 r0 = _mm_loadu_ps(p[0] + i), r1 = _mm_loadu_ps(p[1] + i);
            __m128 r2 = _mm_loadu_ps(p[2] + i), r3 = _mm_loadu_ps(p[3] + i);
            _MM_TRANSPOSE4_PS(r0, r1, r2, r3);
            const __m128 column[4] = {r0, r1, r2, r3};
            for (int j = 0; j < 4; ++j) {
                const __m256d x = _mm256_sub_pd(_mm256_cvtps_pd(column[j]), _mm256_set1_pd((double)e[i + j]));
                total = _mm256_add_pd(total, _mm256_mul_pd(x, x));
            }
        }
        _mm256_storeu_pd(sum, total);
#endif
        for (; i < dim; ++i)
            for (int l = 0; l < 4; ++l) {
                const double x = (double)p[l][i] - (double)e[i];
                sum[l] += x * x;
            }
        for (int l = 0; l < 4; ++l) d2[first + l] = sum[l];
    }
    for (; first < count; ++first) {
        const float* p = rows + (int64_t)slots[first] * stride;
        double sum = 0.0;
        for (int i = 0; i < dim; ++i) {
            const double x = (double)p[i] - (double)e[i];
            sum += x * x;
        }
        d2[first] = sum;
    }
}

}  // namespace

extern const Kernels KERNELS_NAME;
const Kernels KERNELS_NAME = {KERNELS_LABEL, tile_distances, select, row_distances, scan_rows, scan_batch,
                              project,       scan_group,     exact_distances};

}  // namespace softcount
