// red: additions to global memory that return nothing (vectors: sm_90 on). Their order is any.
#pragma once

#include "lib/integers.cuh"

// Adds four values; `to` is aligned to 16 bytes.
__device__ inline void red_add(float* to, float a, float b, float c, float d) {
#if !defined(__CUDA_ARCH__)
  atomicAdd(to, a);
  atomicAdd(to + 1, b);
  atomicAdd(to + 2, c);
  atomicAdd(to + 3, d);
#elif __CUDA_ARCH__ >= 900
  asm volatile("red.relaxed.gpu.global.add.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(to), "f"(a),
               "f"(b), "f"(c), "f"(d)
               : "memory");
#endif
}
