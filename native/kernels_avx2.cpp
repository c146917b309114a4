// Compiled with -mavx2 -mfma; runs only where the processor has both.
#define KERNELS_NAME kernels_avx2
#define KERNELS_LABEL "avx2"
#include "kernels_impl.h"
