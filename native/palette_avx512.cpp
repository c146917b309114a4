// Compiled with -mavx512f; runs only where the processor has it.
#define PALETTE_NAME palette_avx512
#define PALETTE_LABEL "avx512"
#include "palette_impl.h"
