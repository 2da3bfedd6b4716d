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
