// Optimisation barriers: hide a value from the compiler.
#pragma once

#include "lib/integers.cuh"

// The identity. Computations on the result stay in place: the compiler does not hoist them and keep
// their results in registers for the sake of a rare case.
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

__device__ inline float opaque(float x) {
#if defined(__CUDA_ARCH__)
  asm volatile("" : "+f"(x));
#endif
  return x;
}

// Adds `zero`, a 0 that is known at launch only. Values computed from `word` before are then not
// kept alive: that would cost registers throughout, and converting a packed word again costs one
// instruction.
__device__ inline void forget(uint32& word, uint32 zero) {
#if defined(__CUDA_ARCH__)
  asm volatile("add.u32 %0, %0, %1;" : "+r"(word) : "r"(zero));
#else
  word += zero;
#endif
}
// Values read from memory before are read again when they are needed.
__device__ inline void forget_memory() {
#if defined(__CUDA_ARCH__)
  asm volatile("" ::: "memory");
#endif
}
