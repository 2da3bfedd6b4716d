// Conversions that are one instruction.
#pragma once

#include "lib/integers.cuh"

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
