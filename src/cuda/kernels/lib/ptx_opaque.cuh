// Values the compiler is to know nothing about.
#pragma once

#include "lib/integers.cuh"

// What was computed from `word` before is not kept for later: it costs a register for as long, and
// converting a packed word again is one instruction.
__device__ inline void forget(uint32& word) {
#if defined(__CUDA_ARCH__)
  asm volatile("" : "+r"(word));
#else
  (void)word;
#endif
}
