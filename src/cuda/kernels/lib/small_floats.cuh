// Floats of at most 8 bits, in software for GPUs without conversion instructions.
#pragma once

#include "lib/integers.cuh"

// A small float of sign, kExponent and kMantissa bits, as f32.
template <int kExponent, int kMantissa>
__device__ inline float small_to_float(uint32 bits) {
  const int bias = (1 << (kExponent - 1)) - 1;
  const uint32 sign = bits >> (kExponent + kMantissa) << 31;
  const uint32 magnitude = bits & ((1u << (kExponent + kMantissa)) - 1);
  // As the bits of an f32 whose exponent is too small by 127 - bias; the multiplication fixes it,
  // for subnormals, too.
  const float scaled = __uint_as_float(magnitude << (23 - kMantissa));
  const float power = __uint_as_float((uint32)(254 - bias) << 23);
  return __uint_as_float(__float_as_uint(scaled * power) | sign);
}
__device__ inline float quiet_nan() { return __uint_as_float(0x7fffffffu); }
__device__ inline float infinity() { return __uint_as_float(0x7f800000u); }

// Saturates to `largest`. Infinity is kept where the format has one.
template <int kExponent, int kMantissa, bool kInfinity>
__device__ inline uint32 float_to_small(float x, float largest) {
  const int bias = (1 << (kExponent - 1)) - 1;
  const uint32 sign = __float_as_uint(x) >> 31 << (kExponent + kMantissa);
  const float magnitude = fabsf(x);
  if (kInfinity && magnitude == infinity()) return sign | ((1u << kExponent) - 1) << kMantissa;
  // In ulp, a power of two.
  const float within = fminf(magnitude, largest * 2);
  const int exponent = max((int)(__float_as_uint(within) >> 23) - 127, 1 - bias);
  const float per_unit = __uint_as_float((uint32)(127 + kMantissa - exponent) << 23);
  const float units = rintf(within * per_unit);
  if (units > largest * per_unit) {
    const int top = (int)(__float_as_uint(largest) >> 23) - 127;
    const float per_top = __uint_as_float((uint32)(127 + kMantissa - top) << 23);
    return sign | (((uint32)(top + bias - 1) << kMantissa) + (uint32)(largest * per_top));
  }
  const uint32 significand = (uint32)units;
  return sign | (significand < (1u << kMantissa)
                     ? significand
                     : ((uint32)(exponent + bias - 1) << kMantissa) + significand);
}
