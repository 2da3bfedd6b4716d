// Division by launch-time constants.
#pragma once

#include "lib/integers.cuh"

// n / d for 0 <= n < 2^31 by multiplication and shift; `magic` is multiplier | shift << 32 from
// divider_word() on the host, 0 for a divisor of 1.
__device__ inline int divide(int n, int64 magic, int64) {
  if ((uint32)magic == 0) return n;
  return (int)(__umulhi((uint32)n, (uint32)magic) >> (int)(magic >> 32));
}
__device__ inline int64 divide(int64 n, int64, int64 divisor) { return n / divisor; }

// Coordinates on axes kFirst, ..., kEnd - 1 of element `number` among them, the last one varying
// fastest. Args has extent0... and magic0... of the axes.
template <int kFirst, int kEnd, class Args, class Index, int kRank>
__device__ inline void locate_axes(const Args& args, Index number, Index (&at)[kRank]) {
  const int64* extent = &args.extent0;
  const int64* magic = &args.magic0;
#pragma unroll
  for (int axis = kEnd - 1; axis >= kFirst; --axis) {
    const Index above = axis == kFirst ? 0 : divide(number, magic[axis], extent[axis]);
    at[axis] = number - above * (Index)extent[axis];
    number = above;
  }
}
// Coordinates of row `row` on all axes but the last one, which runs along rows.
template <class Args, class Index, int kRank>
__device__ inline void locate_row(const Args& args, Index row, Index (&at)[kRank]) {
  locate_axes<0, kRank - 1>(args, row, at);
}

// x / divisor of floats, correctly rounded: multiplication by the reciprocal and one correction
// step by the remainder. Where there is no remainder (infinity), the uncorrected product.
template <class R>
__device__ inline R quotient(R x, R divisor, R reciprocal) {
  const R guess = x * reciprocal;
  const R result = guess + (x - guess * divisor) * reciprocal;
  return result == result ? result : guess;
}
// The same for a compile-time divisor, whose reciprocal may be exact.
template <int kDivisor, class R>
__device__ inline R quotient(R x) {
  const R reciprocal = (R)1 / (R)kDivisor;
  if constexpr ((kDivisor & (kDivisor - 1)) == 0)
    return x * reciprocal;
  else
    return quotient(x, (R)kDivisor, reciprocal);
}
