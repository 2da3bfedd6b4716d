// Values the compiler is to know nothing about.
#pragma once

#include "lib/integers.cuh"

// Adds `zero`, a 0 that only the launch knows. What was computed from `word` before is then not kept
// for later: that would cost registers all the while, and converting a packed word again costs one
// instruction.
__device__ inline void forget(uint32& word, uint32 zero) {
#if defined(__CUDA_ARCH__)
  asm volatile("add.u32 %0, %0, %1;" : "+r"(word) : "r"(zero));
#else
  word += zero;
#endif
}
