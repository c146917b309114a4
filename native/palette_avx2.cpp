// Compiled with -mavx2; runs only where the processor has it.
#define PALETTE_NAME palette_avx2
#define PALETTE_LABEL "avx2"
#include "palette_impl.h"
