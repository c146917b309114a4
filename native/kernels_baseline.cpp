// Compiled for the baseline of the platform.
#define KERNELS_NAME kernels_baseline
#define KERNELS_LABEL "baseline"
#include "kernels_impl.h"

namespace softcount {

#if defined(SOFTCOUNT_AVX2)
extern const Kernels kernels_avx2;
#endif

const Kernels& best_kernels() {
#if defined(SOFTCOUNT_AVX2)
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return kernels_avx2;
#endif
    return kernels_baseline;
}

const Kernels& baseline_kernels() { return kernels_baseline; }

}  // namespace softcount
