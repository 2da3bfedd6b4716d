// Functions that are one instruction.
#pragma once

// 2^x, relative error below 2^-22; results under the normal numbers are 0.
__device__ inline float exp2_approx(float x) {
#if defined(__CUDA_ARCH__)
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
#else
  return exp2f(x);
#endif
}

// 1 / x of a normal number, error 1 unit in the last place.
__device__ inline float reciprocal(float x) {
#if defined(__CUDA_ARCH__)
  float y;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
#else
  return 1.0f / x;
#endif
}
__device__ inline double reciprocal(double x) { return 1.0 / x; }

// 1 / sqrt(x), error 2 units in the last place.
__device__ inline float reciprocal_root(float x) {
#if defined(__CUDA_ARCH__)
  float y;
  asm("rsqrt.approx.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
#else
  return 1.0f / sqrtf(x);
#endif
}
__device__ inline double reciprocal_root(double x) { return 1.0 / sqrt(x); }
