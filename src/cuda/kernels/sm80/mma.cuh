// Multiplies a K slice of a warp's tiles by mma.sync (sm_80 GEMM).
#pragma once

#include "lib/ptx_mma.cuh"
#include "lib/ptx_mma_exact.cuh"

// Half 0 or 1 of a fragment as operand B, which has 8 columns per instruction.
__device__ inline void half_of(const uint32 (&words)[4], int half, uint32 (&to)[2]) {
  to[0] = words[2 * half];
  to[1] = words[2 * half + 1];
}

// 16 rows of A times 8 columns of B (half of a fragment).
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

// One K slice. read_a(i) and read_b(j) load a fragment of the next slice as soon as its last use in
// this slice is issued.
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

// Tensor cores truncate f32 to its upper 19 bits (tf32, 11 bits of significand). A factor slightly
// above 1 before the truncation adds 0.34 to 0.69 ulp of tf32, so that the error is below 0.69 ulp
// in either direction instead of 1 ulp towards zero. Values with 11 significant bits, infinity and
// NaN are unchanged. This is one instruction; rounding to nearest would be two.
__device__ inline uint32 rounded_by_truncation(uint32 word) {
  return __float_as_uint(__uint_as_float(word) * (1.f + 0x1.6p-12f));
}
// Splits f32 into a sum of kParts tf32 values, largest first.
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
// f32 operands: rounded to tf32 (kProducts = 1), or split into tf32 parts (3xTF32). Two parts need
// all products but small * small (kProducts = 3); three parts need the six largest (kProducts = 6).
// The largest product accumulates in `acc`, the others in `small`.
//
// Error: the first of two parts leaves at most 0.69 * 2^-10 |x|, the second 0.69 * 2^-10 of that,
// 7.6 u |x| with u = 2^-24. With the remainders of both operands and the skipped product, a term is
// wrong by at most 23 u, and a stage of 32 terms adds 4 truncated additions before it is rounded
// like f32. The bound of 64 terms has room for 50 u (6 sqrt(n) + 2). Shorter sums use three parts,
// which leave 2^-31.
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
