// Building blocks of pointwise programs: the pointwise modes on scalars, and random numbers. R is
// float or double. In float, functions based on exponentials cost a handful of instructions: 16-bit
// tensors at memory bandwidth leave time for about 28 per element on an H200.
#pragma once

#include "lib/elements.cuh"
#include "lib/philox.cuh"
#include "lib/ptx_math.cuh"
#include "lib/ptx_maximum.cuh"

template <class R> __device__ inline R truth(bool b) { return b ? (R)1 : (R)0; }

template <class R> __device__ inline R op_add(R x, R b) { return x + b; }
template <class R> __device__ inline R op_mul(R x, R b) { return x * b; }
template <class R> __device__ inline R op_min(R x, R b) { return min_or_nan(x, b); }
template <class R> __device__ inline R op_max(R x, R b) { return max_or_nan(x, b); }
template <class R> __device__ inline R op_add_square(R x, R b) { return x + b * b; }
template <class R> __device__ inline R op_div(R x, R b) { return x / b; }
// Integers: rounds towards zero; division by zero is 0.
template <class R> __device__ inline R op_div_integer(R x, R b) {
  return b == 0 ? (R)0 : trunc(x / b);
}
template <class R> __device__ inline R op_reciprocal_integer(R x) {
  return op_div_integer((R)1, x);
}
template <class R> __device__ inline R op_mod(R x, R b) { return fmod(x, b); }
template <class R> __device__ inline R op_pow(R x, R b) { return pow(x, b); }
template <class R> __device__ inline R op_sub(R x, R b) { return x - b; }
template <class R> __device__ inline R op_atan2(R x, R b) { return atan2(x, b); }

template <class R> __device__ inline R op_sqrt(R x) { return sqrt(x); }
template <class R> __device__ inline R op_abs(R x) { return fabs(x); }
template <class R> __device__ inline R op_ceil(R x) { return ceil(x); }
template <class R> __device__ inline R op_cos(R x) { return cos(x); }
template <class R> __device__ inline R op_exp(R x) { return exp(x); }
template <class R> __device__ inline R op_floor(R x) { return floor(x); }
template <class R> __device__ inline R op_log(R x) { return log(x); }
template <class R> __device__ inline R op_neg(R x) { return -x; }
template <class R> __device__ inline R op_rsqrt(R x) { return (R)1 / sqrt(x); }
template <class R> __device__ inline R op_sin(R x) { return sin(x); }
template <class R> __device__ inline R op_tan(R x) { return tan(x); }
template <class R> __device__ inline R op_erf(R x) { return erf(x); }
template <class R> __device__ inline R op_identity(R x) { return x; }
template <class R> __device__ inline R op_reciprocal(R x) { return (R)1 / x; }

template <class R> __device__ inline R op_sigmoid_fwd(R x) {
  // exp of a negative argument only: no overflow.
  const R e = exp(-fabs(x));
  return (x < 0 ? e : (R)1) / ((R)1 + e);
}
// e^-x = 2^(-x log2 e); its relative error, about |x| ulp, is multiplied by s (1 - s).
template <> __device__ inline float op_sigmoid_fwd(float x) {
  return reciprocal_approx(1.f + exp2_approx(-1.44269504088896341f * x));
}
template <class R> __device__ inline R op_relu_fwd(R x, R lower, R upper, R slope) {
  // One instruction for plain ReLU, which is common in GEMM epilogues and memory-bound kernels.
  if (slope == 0 && upper == (R)infinity()) return max_or_nan(x, lower);
  const R below = slope == 0 ? lower : lower + slope * (x - lower);
  return x < lower ? below : min_or_nan(x, upper);
}
template <class R> __device__ inline R op_relu_bwd(R dy, R x, R lower, R upper, R slope) {
  return dy * (x <= lower ? slope : x >= upper && upper < (R)infinity() ? (R)0 : (R)1);
}
template <class R> __device__ inline R op_tanh_fwd(R x) { return tanh(x); }
template <class R> __device__ inline R op_tanh_bwd(R dy, R x) {
  const R t = tanh(x);
  return dy * ((R)1 - t * t);
}
template <class R> __device__ inline R op_sigmoid_bwd(R dy, R x) {
  const R s = op_sigmoid_fwd(x);
  return dy * (s * ((R)1 - s));
}
template <class R> __device__ inline R op_elu_fwd(R x, R alpha) {
  return x > 0 ? x : alpha * expm1(x);
}
template <class R> __device__ inline R op_elu_bwd(R dy, R x, R alpha) {
  return dy * (x > 0 ? (R)1 : alpha * exp(x));
}
template <class R> __device__ inline R normal_distribution(R x) {
  return (R)0.5 * ((R)1 + erf(x * (R)0.70710678118654752440));
}
template <class R> __device__ inline R op_gelu_fwd(R x) { return x * normal_distribution(x); }
template <class R> __device__ inline R op_gelu_bwd(R dy, R x) {
  const R density = (R)0.39894228040143267794 * exp((R)-0.5 * (x * x));
  return dy * (normal_distribution(x) + x * density);
}
// For results that are stored with at most 11 bits of precision.
//
// 1 - (a1 t + ... + a5 t^5) e^(-x^2 / 2) / 2 for x > 0, t = 1 / (1 + p x): Abramowitz and Stegun
// 7.1.26, with an error below 1e-7. `bell` is the exponential.
__device__ inline float normal_distribution_short(float x, float bell) {
  const float t = reciprocal_approx(1.f + 0.23164189f * fabsf(x));
  float sum = fmaf(t, 0.5307027145f, -0.7265760135f);
  sum = fmaf(t, sum, 0.7107068705f);
  sum = fmaf(t, sum, -0.142248368f);
  sum = fmaf(t, sum, 0.127414796f);
  const float above = t * sum * bell;
  return x < 0.f ? above : 1.f - above;
}
// e^(-x^2 / 2)
__device__ inline float bell_curve(float x) {
  return exp2_approx(-0.72134752044448170f * (x * x));
}
template <class R> __device__ inline R op_gelu_fwd_short(R x) { return op_gelu_fwd(x); }
template <class R> __device__ inline R op_gelu_bwd_short(R dy, R x) { return op_gelu_bwd(dy, x); }
template <> __device__ inline float op_gelu_fwd_short(float x) {
  return x * normal_distribution_short(x, bell_curve(x));
}
template <> __device__ inline float op_gelu_bwd_short(float dy, float x) {
  const float bell = bell_curve(x);
  return dy * (normal_distribution_short(x, bell) + x * (0.39894228040143267794f * bell));
}
template <class R> __device__ inline R op_softplus_fwd(R x, R beta) {
  const R z = beta * x;
  return ((z > 0 ? z : (R)0) + log1p(exp(-fabs(z)))) / beta + (z != z ? z : (R)0);
}
template <class R> __device__ inline R op_softplus_bwd(R dy, R x, R beta) {
  return dy * op_sigmoid_fwd(beta * x);
}
template <class R> __device__ inline R op_swish_fwd(R x, R beta) {
  return x * op_sigmoid_fwd(beta * x);
}
template <class R> __device__ inline R op_swish_bwd(R dy, R x, R beta) {
  const R s = op_sigmoid_fwd(beta * x);
  return dy * (s + beta * x * s * ((R)1 - s));
}
template <class R> __device__ inline R gelu_tanh_inner(R x) {
  return tanh((R)0.79788456080286535588 * (x + (R)0.044715 * (x * x * x)));
}
template <class R> __device__ inline R op_gelu_approx_tanh_fwd(R x) {
  return (R)0.5 * x * ((R)1 + gelu_tanh_inner(x));
}
template <class R> __device__ inline R op_gelu_approx_tanh_bwd(R dy, R x) {
  const R t = gelu_tanh_inner(x);
  const R slope = (R)0.79788456080286535588 * ((R)1 + (R)0.134145 * (x * x));
  return dy * ((R)0.5 * ((R)1 + t) + (R)0.5 * x * ((R)1 - t * t) * slope);
}
// (1 + tanh u) / 2 = 1 / (1 + e^(-2 u)), u = sqrt(2 / pi) (x + 0.044715 x^3): the exponential, in
// which 2 sqrt(2 / pi) log2 e = 2.3022...
__device__ inline float gelu_tanh_exponential(float x) {
  return exp2_approx(x * fmaf(-0.10294324f, x * x, -2.3022081909f));
}
template <class R> __device__ inline R op_gelu_approx_tanh_fwd_short(R x) {
  return op_gelu_approx_tanh_fwd(x);
}
template <class R> __device__ inline R op_gelu_approx_tanh_bwd_short(R dy, R x) {
  return op_gelu_approx_tanh_bwd(dy, x);
}
template <> __device__ inline float op_gelu_approx_tanh_fwd_short(float x) {
  return x * reciprocal_approx(1.f + gelu_tanh_exponential(x));
}
// Times a non-zero scale, as x / ((1 + e^(-2 u)) / scale): makes the scale of dropout free.
template <class R> __device__ inline R op_gelu_approx_tanh_fwd_scaled(R x, R factor) {
  return factor * op_gelu_approx_tanh_fwd(x);
}
template <> __device__ inline float op_gelu_approx_tanh_fwd_scaled(float x, float factor) {
  const float divisor = 1.f / factor;
  return x * reciprocal_approx(fmaf(gelu_tanh_exponential(x), divisor, divisor));
}
template <> __device__ inline float op_gelu_approx_tanh_bwd_short(float dy, float x) {
  const float e = gelu_tanh_exponential(x);
  const float s = reciprocal_approx(1.f + e);
  // s', the slope of 2 u times s (1 - s); 1 - s = e s, which is 0 where e has overflowed.
  const float rest = e < infinity() ? e * s : 1.f;
  const float slope = 1.5957691216f * fmaf(0.134145f, x * x, 1.f);
  return dy * fmaf(x * slope, s * rest, s);
}

template <class R> __device__ inline R op_cmp_eq(R x, R b) { return truth<R>(x == b); }
template <class R> __device__ inline R op_cmp_neq(R x, R b) { return truth<R>(!(x == b)); }
template <class R> __device__ inline R op_cmp_gt(R x, R b) { return truth<R>(x > b); }
template <class R> __device__ inline R op_cmp_ge(R x, R b) { return truth<R>(x >= b); }
template <class R> __device__ inline R op_cmp_lt(R x, R b) { return truth<R>(x < b); }
template <class R> __device__ inline R op_cmp_le(R x, R b) { return truth<R>(x <= b); }
template <class R> __device__ inline R op_logical_and(R x, R b) {
  return truth<R>(x != 0 && b != 0);
}
template <class R> __device__ inline R op_logical_or(R x, R b) {
  return truth<R>(x != 0 || b != 0);
}
template <class R> __device__ inline R op_logical_not(R x) { return truth<R>(!(x != 0)); }
template <class R> __device__ inline R op_binary_select(R x, R b, R predicate) {
  return predicate != 0 ? x : b;
}

template <class R> __device__ inline R op_trunc(R x) { return trunc(x); }
template <class R> __device__ inline R op_round(R x) { return rint(x); }
template <class R> __device__ inline R op_sign(R x) {
  return x > 0 ? (R)1 : x < 0 ? (R)-1 : x;
}
template <class R> __device__ inline R op_log1p(R x) { return log1p(x); }
template <class R> __device__ inline R op_expm1(R x) { return expm1(x); }

// Bitwise operations on whole numbers in R, of integer types with `width` bits. Types of up to 8
// bits are held in float, the others in double.
template <class R> struct IntegerBits { typedef int64 Type; };
template <> struct IntegerBits<float> { typedef int Type; };
template <class R> __device__ inline R op_bit_and(R x, R b, int, bool) {
  typedef typename IntegerBits<R>::Type Int;
  return (R)((Int)x & (Int)b);
}
template <class R> __device__ inline R op_bit_or(R x, R b, int, bool) {
  typedef typename IntegerBits<R>::Type Int;
  return (R)((Int)x | (Int)b);
}
template <class R> __device__ inline R op_bit_xor(R x, R b, int, bool) {
  typedef typename IntegerBits<R>::Type Int;
  return (R)((Int)x ^ (Int)b);
}
template <class R> __device__ inline R op_bit_not(R x, int width, bool is_signed) {
  return (is_signed ? (R)-1 : (R)(int64)((1ull << width % 64) - 1)) - x;
}
template <class R> __device__ inline R op_shift_left(R x, R b, int width, bool is_signed) {
  if (!(b >= 0 && b < (R)width)) return (R)0;
  const int unused = 64 - width;
  const uint64 bits = (uint64)(int64)x << (int)b << unused;
  return is_signed ? (R)((int64)bits >> unused) : (R)(int64)(bits >> unused);
}
template <class R> __device__ inline R op_shift_right(R x, R b, int width, bool) {
  return (R)((int64)x >> (b >= 0 && b < (R)width ? (int)b : 63));
}
