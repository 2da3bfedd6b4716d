// Conversions with a PTX instruction.
#pragma once

#include "lib/integers.cuh"
#include "lib/small_floats.cuh"

#if defined(__CUDA_ARCH__)

__device__ inline float f16_to_float(uint16 h) {
  float f;
  asm("cvt.f32.f16 %0, %1;" : "=f"(f) : "h"(h));
  return f;
}
// To nearest even; infinity past the range.
__device__ inline uint16 float_to_f16(float x) {
  uint16 h;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h) : "f"(x));
  return h;
}

#else

__device__ inline float f16_to_float(uint16 h) {
  const uint32 sign = (uint32)(h & 0x8000) << 16, magnitude = h & 0x7fff;
  if (magnitude > 0x7c00) return __uint_as_float(0x7fffffffu);
  if (magnitude == 0x7c00) return __uint_as_float(sign | 0x7f800000u);
  // The bits of an f32 whose exponent is too small by 112; the product fixes subnormals, too.
  const float scaled = __uint_as_float(magnitude << 13) * 0x1p112f;
  return __uint_as_float(sign | __float_as_uint(scaled));
}
__device__ inline uint16 float_to_f16(float x) {
  const uint32 bits = __float_as_uint(x), magnitude = bits & 0x7fffffffu;
  const uint32 sign = bits >> 16 & 0x8000u;
  if (magnitude > 0x7f800000u) return 0x7fff;
  if (magnitude >= 0x477ff000u) return (uint16)(sign | 0x7c00u);  // 65520 and more
  if (magnitude < 0x38800000u)                                    // below 2^-14: units of 2^-24
    return (uint16)(sign | (uint32)rintf(__uint_as_float(magnitude) * 0x1p24f));
  const uint32 rounded = magnitude + 0xfffu + (magnitude >> 13 & 1u);
  return (uint16)(sign | ((rounded >> 13) - (112u << 10)));
}

#endif

// f32 to bf16, to nearest even.
__device__ inline uint16 float_to_bf16(float x) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  uint16 h;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(h) : "f"(x));
  return h;
#else
  const uint32 bits = __float_as_uint(x);
  if (x != x) return (uint16)(bits >> 16 | 0x40u);
  return (uint16)((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
#endif
}

// Two values at once, the first in the lower half.
__device__ inline uint32 pair_to_f16(float low, float high) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  uint32 pair;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  return pair;
#else
  return (uint32)float_to_f16(low) | (uint32)float_to_f16(high) << 16;
#endif
}
__device__ inline uint32 pair_to_bf16(float low, float high) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  uint32 pair;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  return pair;
#else
  return (uint32)float_to_bf16(low) | (uint32)float_to_bf16(high) << 16;
#endif
}
// Saturating to 448; NaN is 0x7f. Compilers know the instruction for sm_89 from CUDA 12.1 on.
__device__ inline uint16 pair_to_e4m3(float low, float high) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890 && \
    __CUDACC_VER_MAJOR__ * 100 + __CUDACC_VER_MINOR__ >= 1201
  uint16 pair;
  asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(pair) : "f"(high), "f"(low));
  return pair;
#else
  const auto narrow = [](float x) {
    return x != x ? 0x7fu : float_to_small<4, 3, false>(x, 448.f);
  };
  return (uint16)(narrow(low) | narrow(high) << 8);
#endif
}
