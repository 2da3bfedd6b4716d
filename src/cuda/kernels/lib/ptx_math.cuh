// Arithmetic with a PTX instruction.
#pragma once

#include "lib/integers.cuh"

#if defined(__CUDA_ARCH__)

__device__ inline uint64 multiply_wide(uint32 a, uint32 b) {
  uint64 product;
  asm("mul.wide.u32 %0, %1, %2;" : "=l"(product) : "r"(a), "r"(b));
  return product;
}

// Of the special function unit, accurate to about 2 ulp; subnormals are flushed to 0.
__device__ inline float exp2_approx(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
__device__ inline float reciprocal_approx(float x) {
  float y;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
__device__ inline float reciprocal_root_approx(float x) {
  float y;
  asm("rsqrt.approx.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

#else

__device__ inline uint64 multiply_wide(uint32 a, uint32 b) { return (uint64)a * b; }
__device__ inline float exp2_approx(float x) { return exp2f(x); }
__device__ inline float reciprocal_approx(float x) { return 1.f / x; }
__device__ inline float reciprocal_root_approx(float x) { return 1.f / sqrtf(x); }

#endif
