// Hiding a number from the compiler.
#pragma once

#include "lib/integers.cuh"

// The same number. What is computed from it stays where it stands: it is not moved to where it
// would be kept in registers for the sake of a rare case.
__device__ inline int opaque(int x) {
#if defined(__CUDA_ARCH__)
  asm volatile("" : "+r"(x));
#endif
  return x;
}
__device__ inline int64 opaque(int64 x) {
#if defined(__CUDA_ARCH__)
  asm volatile("" : "+l"(x));
#endif
  return x;
}

// Adds `zero`, a 0 that only the launch knows. What was computed from `word` before is then not
// kept for later: that would cost registers all the while, and converting a packed word again costs
// one instruction.
__device__ inline void forget(uint32& word, uint32 zero) {
#if defined(__CUDA_ARCH__)
  asm volatile("add.u32 %0, %0, %1;" : "+r"(word) : "r"(zero));
#else
  word += zero;
#endif
}
// What was read from memory before is then read again when it is needed.
__device__ inline void forget_memory() {
#if defined(__CUDA_ARCH__)
  asm volatile("" ::: "memory");
#endif
}
