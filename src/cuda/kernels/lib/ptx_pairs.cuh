// Packed pairs of 16-bit floats (half2, bfloat162) in a 32-bit word.
#pragma once

#include "lib/elements.cuh"

// A 16-bit value in both halves of a word.
__device__ constexpr uint32 both(int x) { return (uint32)x * 0x10001u; }

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900

// Maximum of each half; NaN where either is.
__device__ inline uint32 max_pair_or_nan(bf16, uint32 a, uint32 b) {
  uint32 larger;
  asm("max.NaN.bf16x2 %0, %1, %2;" : "=r"(larger) : "r"(a), "r"(b));
  return larger;
}
__device__ inline uint32 max_pair_or_nan(f16, uint32 a, uint32 b) {
  uint32 larger;
  asm("max.NaN.f16x2 %0, %1, %2;" : "=r"(larger) : "r"(a), "r"(b));
  return larger;
}
// Larger magnitude of each half, NaN where either is; the signs are unspecified.
__device__ inline uint32 max_magnitudes(bf16, uint32 a, uint32 b) {
  uint32 larger;
  asm("max.NaN.xorsign.abs.bf16x2 %0, %1, %2;" : "=r"(larger) : "r"(a), "r"(b));
  return larger;
}
__device__ inline uint32 max_magnitudes(f16, uint32 a, uint32 b) {
  uint32 larger;
  asm("max.NaN.xorsign.abs.f16x2 %0, %1, %2;" : "=r"(larger) : "r"(a), "r"(b));
  return larger;
}
// All ones in a half where a > b, zeros elsewhere, also where either is NaN.
__device__ inline uint32 greater_pair(bf16, uint32 a, uint32 b) {
  uint32 mask;
  asm("set.gt.u32.bf16x2 %0, %1, %2;" : "=r"(mask) : "r"(a), "r"(b));
  return mask;
}
__device__ inline uint32 greater_pair(f16, uint32 a, uint32 b) {
  uint32 mask;
  asm("set.gt.u32.f16x2 %0, %1, %2;" : "=r"(mask) : "r"(a), "r"(b));
  return mask;
}

#else

template <class D> __device__ inline bool is_greater(D d, uint32 a, uint32 b) {
  return widen(d, (uint16)a) > widen(d, (uint16)b);
}
template <class D> __device__ inline uint32 greater_pair(D d, uint32 a, uint32 b) {
  return (is_greater(d, a, b) ? 0xffffu : 0u) |
         (is_greater(d, a >> 16, b >> 16) ? 0xffff0000u : 0u);
}
template <class D> __device__ inline uint16 max_or_nan(D d, uint16 a, uint16 b) {
  return widen(d, a) != widen(d, a) || is_greater(d, a, b) ? a : b;
}
template <class D> __device__ inline uint32 max_pair_or_nan(D d, uint32 a, uint32 b) {
  return (uint32)max_or_nan(d, (uint16)a, (uint16)b) |
         (uint32)max_or_nan(d, (uint16)(a >> 16), (uint16)(b >> 16)) << 16;
}
template <class D> __device__ inline uint32 max_magnitudes(D, uint32 a, uint32 b) {
  return max(a & 0x7fffu, b & 0x7fffu) | max(a & 0x7fff0000u, b & 0x7fff0000u);  // as integers
}

#endif

// a * b + c of each half, rounded once.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
__device__ inline uint32 fma_pair(bf16, uint32 a, uint32 b, uint32 c) {
  uint32 sum;
  asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(sum) : "r"(a), "r"(b), "r"(c));
  return sum;
}
__device__ inline uint32 fma_pair(f16, uint32 a, uint32 b, uint32 c) {
  uint32 sum;
  asm("fma.rn.f16x2 %0, %1, %2, %3;" : "=r"(sum) : "r"(a), "r"(b), "r"(c));
  return sum;
}
#else
template <class D> __device__ inline uint16 fma_half(D d, uint32 a, uint32 b, uint32 c) {
  // Products of 11 bits are exact in double; rounding the sum to odd first makes this one rounding.
  const double product = (double)widen(d, (uint16)a) * (double)widen(d, (uint16)b);
  return narrow(d, product + (double)widen(d, (uint16)c));
}
template <class D> __device__ inline uint32 fma_pair(D d, uint32 a, uint32 b, uint32 c) {
  return (uint32)fma_half(d, a, b, c) | (uint32)fma_half(d, a >> 16, b >> 16, c >> 16) << 16;
}
#endif

// Halves of words as unsigned integers: maximum, minimum, sum modulo 2^16.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
__device__ inline uint32 max_of_halves(uint32 a, uint32 b) {
  uint32 larger;
  asm("max.u16x2 %0, %1, %2;" : "=r"(larger) : "r"(a), "r"(b));
  return larger;
}
__device__ inline uint32 min_of_halves(uint32 a, uint32 b) {
  uint32 smaller;
  asm("min.u16x2 %0, %1, %2;" : "=r"(smaller) : "r"(a), "r"(b));
  return smaller;
}
__device__ inline uint32 add_halves(uint32 a, uint32 b) {
  uint32 sum;
  asm("add.u16x2 %0, %1, %2;" : "=r"(sum) : "r"(a), "r"(b));
  return sum;
}
#else
__device__ inline uint32 max_of_halves(uint32 a, uint32 b) {
  return max(a & 0xffffu, b & 0xffffu) | max(a & 0xffff0000u, b & 0xffff0000u);
}
__device__ inline uint32 min_of_halves(uint32 a, uint32 b) {
  return min(a & 0xffffu, b & 0xffffu) | min(a & 0xffff0000u, b & 0xffff0000u);
}
__device__ inline uint32 add_halves(uint32 a, uint32 b) {
  return (a + b & 0xffffu) | (a & 0xffff0000u) + (b & 0xffff0000u);
}
#endif

// (a & mask) ^ c: compilers emit two instructions where two operands are constants.
__device__ inline uint32 and_xor(uint32 a, uint32 mask, uint32 c) {
#if defined(__CUDA_ARCH__)
  uint32 result;
  asm("lop3.b32 %0, %1, %2, %3, 0x6a;" : "=r"(result) : "r"(a), "r"(mask), "r"(c));
  return result;
#else
  return (a & mask) ^ c;
#endif
}

// Four e4m3 to f16, in order, if kConvertsE4m3. Compilers know the instruction for sm_89 from CUDA
// 12.1 on.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890 && \
    __CUDACC_VER_MAJOR__ * 100 + __CUDACC_VER_MINOR__ >= 1201
static const bool kConvertsE4m3 = true;
__device__ inline void e4m3_to_f16_pairs(uint32 word, uint32 (&pairs)[2]) {
  asm("{\n.reg .b16 low, high;\n"
      "mov.b32 {low, high}, %2;\n"
      "cvt.rn.f16x2.e4m3x2 %0, low;\n"
      "cvt.rn.f16x2.e4m3x2 %1, high;\n}"
      : "=r"(pairs[0]), "=r"(pairs[1])
      : "r"(word));
}
#else
static const bool kConvertsE4m3 = false;
__device__ inline void e4m3_to_f16_pairs(uint32, uint32 (&)[2]) {}
#endif
