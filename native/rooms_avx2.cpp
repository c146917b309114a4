// Compiled for AVX2, without FMA: the same bits as the baseline.
#define ROOMS_NAME rooms_avx2
#define ROOMS_LABEL "avx2"
#include "rooms_impl.h"
