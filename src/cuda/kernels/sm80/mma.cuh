// A slice of depth of a warp's tiles, multiplied and added to its sums.
#pragma once

#include "lib/ptx_mma.cuh"
#include "lib/ptx_mma_exact.cuh"

// A fragment as the side that has 8 columns at a time wants it: half 0 or 1.
__device__ inline void half_of(const uint32 (&words)[4], int half, uint32 (&to)[2]) {
  to[0] = words[2 * half];
  to[1] = words[2 * half + 1];
}

// 16 rows of A times 8 columns of B: half of a fragment.
template <class Type>
__device__ inline void mma_half(float (&acc)[4], const Fragment<Type>& a,
                                     const Fragment<Type>& b, int half) {
  uint32 column[2];
  half_of(b.words, half, column);
  multiply_add(Type(), acc, a.words, column);
}
template <class A, class B>
__device__ inline void mma_half(int (&acc)[4], const Fragment<A>& a, const Fragment<B>& b,
                                     int half) {
  uint32 column[2];
  half_of(b.words, half, column);
  multiply_add(A(), B(), acc, a.words, column);
}
__device__ inline void mma_half(double (&acc)[4], const Fragment<f64>& a,
                                     const Fragment<f64>& b, int half) {
  multiply_add(f64(), acc, a.words, b.words[half]);
}

// A slice of the depth. Each fragment is read again (read_a(i), read_b(j): that of the next slice)
// as soon as it has been multiplied.
template <class A, class B, class Accum, int kM, int kN, class ReadA, class ReadB>
__device__ inline void mma_slice(Fragment<A> (&a)[kM], Fragment<B> (&b)[kN],
                                      Accum (&acc)[kM][2 * kN][4], Accum (&)[kM][2 * kN][4],
                                      const ReadA& read_a, const ReadB& read_b) {
#pragma unroll
  for (int j = 0; j < kN; ++j) {
#pragma unroll
    for (int i = 0; i < kM; ++i) {
      mma_half(acc[i][2 * j], a[i], b[j], 0);
      mma_half(acc[i][2 * j + 1], a[i], b[j], 1);
      if (j == kN - 1) read_a(i);
    }
    read_b(j);
  }
}

// What matrix units make of f32 is its upper 19 bits, 11 of them significant. A factor a little
// above 1 comes before that cut: it adds 0.34 to 0.69 of the last of these bits, so that the error
// is below 0.69 of it, either way, instead of 1 towards zero. Numbers of 11 bits stay as they are,
// so do infinity and NaN. One instruction; rounding to nearest would be two.
__device__ inline uint32 rounded_by_truncation(uint32 word) {
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
      parts[part][i] = rounded_by_truncation(rest);
      if (part + 1 == kParts) break;
      parts[part][i] &= 0xffffe000u;
      rest = __float_as_uint(__uint_as_float(rest) - __uint_as_float(parts[part][i]));
    }
  }
}
// f32, rounded to tf32 (kProducts = 1) or in as many products as its parts need: of two parts all
// but small * small (3), of three parts all that count (6). The largest product goes to `sums`, the
// others to `small`.
// Of two parts the first leaves 0.69 * 2^-10 |x| at most, the second 0.69 * 2^-10 of that: 7.6 u
// |x|, u = 2^-24. With both operands' rests and the product left out a term is wrong by 23 u at
// most, and every stage of 32 terms by 4 truncated additions more, before it is rounded like f32.
// The bound of 64 terms has room for 50 u (6 sqrt(n) + 2); shorter sums take three parts, which
// leave 2^-31.
template <int kM, int kN, class ReadA, class ReadB>
__device__ inline void mma_slice(Fragment<f32> (&a)[kM], Fragment<f32> (&b)[kN],
                                      float (&acc)[kM][2 * kN][4], float (&small)[kM][2 * kN][4],
                                      const ReadA& read_a, const ReadB& read_b) {
  const int kParts = kProducts == 1 ? 1 : kProducts == 3 ? 2 : 3;
  uint32 left[kM][kParts][4];
#pragma unroll
  for (int i = 0; i < kM; ++i) {
    split_tf32(a[i].words, left[i]);
    read_a(i);
  }
#pragma unroll
  for (int j = 0; j < kN; ++j) {
    uint32 right[kParts][4];
    split_tf32(b[j].words, right);
    read_b(j);
#pragma unroll
    for (int order = kParts - 1; order >= 0; --order)
#pragma unroll
      for (int part = 0; part <= order; ++part)
#pragma unroll
        for (int i = 0; i < kM; ++i)
#pragma unroll
          for (int half = 0; half < 2; ++half) {
            uint32 column[2];
            half_of(right[order - part], half, column);
            multiply_add(f32(), order == 0 ? acc[i][2 * j + half] : small[i][2 * j + half],
                         left[i][part], column);
          }
  }
}
