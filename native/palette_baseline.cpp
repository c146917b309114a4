// Compiled for the baseline of the platform.
#define PALETTE_NAME palette_baseline
#define PALETTE_LABEL "baseline"
#include "palette_impl.h"

namespace softcount {

#if defined(SOFTCOUNT_AVX2)
extern const PaletteKernels palette_avx2, palette_avx512;
#endif

const PaletteKernels* palette_kernels(int rank) {
#if defined(SOFTCOUNT_AVX2)
    if (__builtin_cpu_supports("avx512f") && rank-- == 0) return &palette_avx512;
    if (__builtin_cpu_supports("avx2") && rank-- == 0) return &palette_avx2;
#endif
    return rank == 0 ? &palette_baseline : nullptr;
}

}  // namespace softcount
