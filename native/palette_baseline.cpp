// Compiled for the baseline of the platform.
#define PALETTE_NAME palette_baseline
#define PALETTE_LABEL "baseline"
#include "palette_impl.h"

namespace softcount {

#if defined(SOFTCOUNT_AVX2)
extern const PaletteKernels palette_avx2, palette_avx512;
#endif

const PaletteKernels& best_palette_kernels() {
#if defined(SOFTCOUNT_AVX2)
    if (__builtin_cpu_supports("avx512f")) return palette_avx512;
    if (__builtin_cpu_supports("avx2")) return palette_avx2;
#endif
    return palette_baseline;
}

const PaletteKernels& baseline_palette_kernels() { return palette_baseline; }

}  // namespace softcount
