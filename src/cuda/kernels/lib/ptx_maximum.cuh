// NaN-propagating maximum and minimum.
#pragma once

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
__device__ inline float max_or_nan(float a, float b) {
  float larger;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(larger) : "f"(a), "f"(b));
  return larger;
}
__device__ inline float min_or_nan(float a, float b) {
  float smaller;
  asm("min.NaN.f32 %0, %1, %2;" : "=f"(smaller) : "f"(a), "f"(b));
  return smaller;
}
#else
__device__ inline float max_or_nan(float a, float b) { return a != a || a > b ? a : b; }
__device__ inline float min_or_nan(float a, float b) { return a != a || a < b ? a : b; }
#endif
__device__ inline double max_or_nan(double a, double b) { return a != a || a > b ? a : b; }
__device__ inline double min_or_nan(double a, double b) { return a != a || a < b ? a : b; }
