// exp(x - shift) as a power of two. The difference comes first: shift * log2(e) alone may overflow.
#pragma once

#include "lib/ptx_math.cuh"

__device__ inline float exp_shifted(float x, float shift) {
  return exp2_approx((x - shift) * 1.44269504f);
}
__device__ inline double exp_shifted(double x, double shift) { return exp(x - shift); }

// NaN-ignoring maximum: NaN comes back through the sum of exponentials.
struct Larger {
  template <class R> __device__ static R identity() { return -(R)__int_as_float(0x7f800000); }
  __device__ static float apply(float a, float b) { return fmaxf(a, b); }
  __device__ static double apply(double a, double b) { return fmax(a, b); }
};
__device__ inline float reciprocal(float x) { return reciprocal_approx(x); }
__device__ inline double reciprocal(double x) { return 1.0 / x; }
