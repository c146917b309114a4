// Compiled for the baseline of the platform.
#define ROOMS_NAME rooms_baseline
#define ROOMS_LABEL "baseline"
#include "rooms_impl.h"

namespace softcount {
namespace rooms {

#if defined(SOFTCOUNT_AVX2)
extern const Kernels rooms_avx2;
#endif

const Kernels* kernels(int rank) {
#if defined(SOFTCOUNT_AVX2)
    if (__builtin_cpu_supports("avx2") && rank-- == 0) return &rooms_avx2;
#endif
    return rank == 0 ? &rooms_baseline : nullptr;
}

}  // namespace rooms
}  // namespace softcount
