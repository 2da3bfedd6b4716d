// Hiding a number from the compiler.
#pragma once

// The same number. What is computed from it stays where it stands: it is not moved to where it
// would be kept in registers for the sake of a rare case.
__device__ inline int opaque(int x) {
#if defined(__CUDA_ARCH__)
  asm volatile("" : "+r"(x));
#endif
  return x;
}
