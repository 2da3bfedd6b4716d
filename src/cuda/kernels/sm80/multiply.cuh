// A slice of depth of a warp's tiles, multiplied and added to its sums.
#pragma once

#include "lib/ptx_mma.cuh"
#include "lib/ptx_mma_exact.cuh"

// A fragment as the side that has 8 columns at a time wants it: half 0 or 1.
__device__ inline void half_of(const uint32 (&words)[4], int half, uint32 (&to)[2]) {
  to[0] = words[2 * half];
  to[1] = words[2 * half + 1];
}

// f16 and bf16.
template <class Type, int kM, int kN>
__device__ inline void multiply_slice(const Fragment<Type> (&a)[kM], const Fragment<Type> (&b)[kN],
                                      float (&sums)[kM][2 * kN][4],
                                      float (&)[kM][2 * kN][4]) {
#pragma unroll
  for (int i = 0; i < kM; ++i)
#pragma unroll
    for (int j = 0; j < 2 * kN; ++j) {
      uint32 column[2];
      half_of(b[j / 2].words, j % 2, column);
      multiply_add(Type(), sums[i][j], a[i].words, column);
    }
}

template <class A, class B, int kM, int kN>
__device__ inline void multiply_slice(const Fragment<A> (&a)[kM], const Fragment<B> (&b)[kN],
                                      int (&sums)[kM][2 * kN][4],
                                      int (&)[kM][2 * kN][4]) {
#pragma unroll
  for (int i = 0; i < kM; ++i)
#pragma unroll
    for (int j = 0; j < 2 * kN; ++j) {
      uint32 column[2];
      half_of(b[j / 2].words, j % 2, column);
      multiply_add(A(), B(), sums[i][j], a[i].words, column);
    }
}

template <int kM, int kN>
__device__ inline void multiply_slice(const Fragment<f64> (&a)[kM], const Fragment<f64> (&b)[kN],
                                      double (&sums)[kM][2 * kN][4],
                                      double (&)[kM][2 * kN][4]) {
#pragma unroll
  for (int i = 0; i < kM; ++i)
#pragma unroll
    for (int j = 0; j < 2 * kN; ++j)
      multiply_add(f64(), sums[i][j], a[i].words, b[j / 2].words[j % 2]);
}

// What matrix units make of f32 is its upper 19 bits, 11 of them significant. A factor a little
// above 1 comes before that cut: it adds 0.35 to 0.7 of the last of these bits, so that the error is
// below 0.7 of it, either way, instead of 1 towards zero. Numbers of 11 bits stay as they are, so do
// infinity and NaN. One instruction; rounding to nearest would be two.
__device__ inline uint32 almost_rounded(uint32 word) {
  return __float_as_uint(__uint_as_float(word) * (1.f + 0x1.6p-12f));
}
// f32 as a sum of kParts numbers of tf32, largest first.
template <int kParts, int kCount>
__device__ inline void split_tf32(const uint32 (&words)[kCount], uint32 (&parts)[kParts][kCount]) {
#pragma unroll
  for (int i = 0; i < kCount; ++i) {
    uint32 rest = words[i];
#pragma unroll
    for (int part = 0; part < kParts; ++part) {
      parts[part][i] = almost_rounded(rest);
      if (part + 1 == kParts) break;
      parts[part][i] &= 0xffffe000u;
      rest = __float_as_uint(__uint_as_float(rest) - __uint_as_float(parts[part][i]));
    }
  }
}
// f32, rounded to tf32 (kProducts = 1) or in as many products as its parts need: of two parts all
// but small * small (3), of three parts all that count (6). The largest product goes to `sums`, the
// others to `small`.
template <int kM, int kN>
__device__ inline void multiply_slice(const Fragment<f32> (&a)[kM], const Fragment<f32> (&b)[kN],
                                      float (&sums)[kM][2 * kN][4],
                                      float (&small)[kM][2 * kN][4]) {
  const int kParts = kProducts == 1 ? 1 : kProducts == 3 ? 2 : 3;
  uint32 left[kM][kParts][4];
#pragma unroll
  for (int i = 0; i < kM; ++i) split_tf32(a[i].words, left[i]);
#pragma unroll
  for (int j = 0; j < 2 * kN; ++j) {
    uint32 column[2], right[kParts][2];
    half_of(b[j / 2].words, j % 2, column);
    split_tf32(column, right);
#pragma unroll
    for (int order = kParts - 1; order >= 0; --order)
#pragma unroll
      for (int part = 0; part <= order; ++part)
#pragma unroll
        for (int i = 0; i < kM; ++i)
          multiply_add(f32(), order == 0 ? sums[i][j] : small[i][j], left[i][part],
                       right[order - part]);
  }
}
