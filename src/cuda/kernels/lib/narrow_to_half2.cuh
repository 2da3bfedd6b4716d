// Exact conversion of words of 8- and 4-bit values to packed pairs of 16-bit floats (half2) by a
// few bit operations. A word of 2 n values yields n pairs: value j of its lower half is in the
// lower half of pair j, value j of its upper half in the upper half. With PairsOfNeighbours pair j
// has values 2 j and 2 j + 1 instead.
#pragma once

#include "lib/ptx_pairs.cuh"

template <class T> struct ShortFloat;
template <> struct ShortFloat<bf16> {
  static const int kMantissa = 7, kBias = 127;
  static const uint32 kIntegers = 0x43004300u;  // 128: the low mantissa bits count units
};
template <> struct ShortFloat<f16> {
  static const int kMantissa = 10, kBias = 15;
  static const uint32 kIntegers = 0x64006400u;  // 1024
};
static const uint32 kMinus = 0x80008000u;
// 2^exponent
template <class T> __device__ constexpr uint32 power_pair(int exponent) {
  return both((exponent + ShortFloat<T>::kBias) << ShortFloat<T>::kMantissa);
}

__device__ inline void to_pairs(bf16, bf16, uint32 word, uint32 (&pairs)[1]) { pairs[0] = word; }
__device__ inline void to_pairs(f16, f16, uint32 word, uint32 (&pairs)[1]) { pairs[0] = word; }

template <class D> struct PairsOfNeighbours { static const bool value = false; };
template <> struct PairsOfNeighbours<e4m3> { static const bool value = true; };

// By the conversion instruction, or with the bits of e4m3 as those of a T whose exponent is too
// small by the difference of the biases; the multiplication fixes it, for subnormals, too. NaN then
// becomes 480: see nonfinite_bytes.
template <class T>
__device__ inline void to_pairs(e4m3, T t, uint32 word, uint32 (&pairs)[2]) {
  if constexpr (kConvertsE4m3) {
    e4m3_to_f16_pairs(word, pairs);
    if constexpr (ShortFloat<T>::kMantissa == ShortFloat<bf16>::kMantissa) {
#pragma unroll
      for (int j = 0; j < 2; ++j)
        pairs[j] =
            pair_to_bf16(f16_to_float((uint16)pairs[j]), f16_to_float((uint16)(pairs[j] >> 16)));
    }
  } else {
    const int shift = 11 - ShortFloat<T>::kMantissa;
    const uint32 magnitude = both(0x7f00 >> shift);
#pragma unroll
    for (int j = 0; j < 2; ++j) {
      // Values in the upper bytes of the halves.
      const uint32 upper = __byte_perm(word, 0u, j == 0 ? 0x1404 : 0x3424);
      pairs[j] = fma_pair(t, (upper & kMinus) | (upper >> shift & magnitude),
                          power_pair<T>(ShortFloat<T>::kBias - 7), kMinus);
    }
  }
}
// The same for e5m2, whose infinity and NaN become 65536 and more.
__device__ inline void to_pairs(e5m2, bf16 t, uint32 word, uint32 (&pairs)[2]) {
#pragma unroll
  for (int j = 0; j < 2; ++j) {
    const uint32 upper = j == 0 ? word << 8 : word;
    pairs[j] = fma_pair(t, (upper & kMinus) | (upper >> 3 & both(0x7f00 >> 3)),
                        power_pair<bf16>(ShortFloat<bf16>::kBias - 15), kMinus);
  }
}
// e5m2 is the upper half of an f16.
__device__ inline void to_pairs(e5m2, f16, uint32 word, uint32 (&pairs)[2]) {
  pairs[0] = word << 8 & both(0xff00);
  pairs[1] = word & both(0xff00);
}
// 2^k + the lower 7 bits, minus 2^k or, where the highest bit is set, 2^k + 128.
template <class T>
__device__ inline void to_pairs(i8, T t, uint32 word, uint32 (&pairs)[2]) {
#pragma unroll
  for (int j = 0; j < 2; ++j) {
    const uint32 lower = word >> 8 * j;
    pairs[j] = fma_pair(t, (lower & both(0x7f)) | ShortFloat<T>::kIntegers, power_pair<T>(0),
                        (lower & both(0x80)) | ShortFloat<T>::kIntegers | kMinus);
  }
}
template <class T>
__device__ inline void to_pairs(u4, T t, uint32 word, uint32 (&pairs)[4]) {
#pragma unroll
  for (int j = 0; j < 4; ++j)
    pairs[j] = fma_pair(t, and_xor(word >> 4 * j, both(15), ShortFloat<T>::kIntegers),
                        power_pair<T>(0), ShortFloat<T>::kIntegers | kMinus);
}
// With its highest bit flipped, the code is the value plus 8.
template <class T>
__device__ inline void to_pairs(i4, T t, uint32 word, uint32 (&pairs)[4]) {
#pragma unroll
  for (int j = 0; j < 4; ++j)
    pairs[j] = fma_pair(t, and_xor(word >> 4 * j, both(15), ShortFloat<T>::kIntegers | both(8)),
                        power_pair<T>(0), ShortFloat<T>::kIntegers | both(8) | kMinus);
}
template <class T>
__device__ inline void to_pairs(e2m1, T t, uint32 word, uint32 (&pairs)[4]) {
  const int place = ShortFloat<T>::kMantissa - 1;
#pragma unroll
  for (int j = 0; j < 4; ++j) {
    const uint32 number = word >> 4 * j & both(15);
    pairs[j] = fma_pair(t, (number << 12 & kMinus) | (number << place & both(7 << place)),
                        power_pair<T>(ShortFloat<T>::kBias - 1), kMinus);
  }
}

// The same without the final subtraction: values that are larger by `offset`, a T in both halves.
// The caller subtracts the contribution of the offset from its accumulators.
template <class D> struct HasOffset { static const bool value = false; };
template <> struct HasOffset<u4> { static const bool value = true; };
template <> struct HasOffset<i4> { static const bool value = true; };
// Sign bits of a value's code.
template <class D> struct SignBit { static const int value = 0; };
template <> struct SignBit<i4> { static const int value = 8; };
template <class T, class D> __device__ constexpr uint32 offset_pair(D) { return 0; }
template <class T> __device__ constexpr uint32 offset_pair(u4) { return power_pair<T>(4); }
template <class T> __device__ constexpr uint32 offset_pair(i4) {
  return power_pair<T>(4) | both(1 << (ShortFloat<T>::kMantissa - 1));  // 24
}
// The upper 4 mantissa bits of 16 to 31 count units.
template <class D, class T>
__device__ inline void to_offset_pairs(D d, T, uint32 word, uint32 (&pairs)[4]) {
  const int place = ShortFloat<T>::kMantissa - 4;
#pragma unroll
  for (int j = 0; j < 4; ++j) {
    const uint32 moved = 4 * j < place ? word << (place - 4 * j) : word >> (4 * j - place);
    pairs[j] = and_xor(moved, both(15 << place), offset_pair<T>(d));
  }
}

// 4-bit integers times the scale of their row, rounded once, in 9 instructions for 8 values. The
// low mantissa and exponent bits of subnormal bf16 count multiples of 2^-133, so values only have
// to be masked out of a word: pairs 0 and 2 in place, pairs 1 and 3 sixteen times as large. One fma
// then multiplies by the scale and subtracts the 8 by which i4, with its highest bit flipped, is
// too large. Products are 2^kPower times the true ones, and exact except for that rounding if the
// scale is in range.
struct SmallScale {
  static const int kTimes = 117, kPower = kTimes - 133;
  uint32 even, odd, offset;

  // `pair`: the scale in both halves.
  template <class D> __device__ void set(D, uint32 pair) {
    even = fma_pair(bf16(), pair, power_pair<bf16>(kTimes), kMinus);
    odd = fma_pair(bf16(), pair, power_pair<bf16>(kTimes - 4), kMinus);
    offset = kMinus;
    if constexpr (SignBit<D>::value != 0)
      offset = fma_pair(bf16(), pair, power_pair<bf16>(3 + kPower) | kMinus, kMinus);
  }
  template <class D> __device__ void pairs(D, uint32 word, uint32 (&pairs)[4]) const {
    constexpr int kSign = SignBit<D>::value;
#pragma unroll
    for (int j = 0; j < 4; j += 2) {
      const uint32 lower = word >> 4 * j;
      pairs[j] = fma_pair(bf16(), and_xor(lower, both(15), both(kSign)), even, offset);
      pairs[j + 1] =
          fma_pair(bf16(), and_xor(lower, both(15 << 4), both(kSign << 4)), odd, offset);
    }
  }
};
// Tracks whether scales are in the range of SmallScale: zero, or such that neither they nor the
// products lose bits.
struct SmallScaleRange {
  uint32 largest = 0, least = 0xffffffffu;  // magnitudes, the least of them minus one: of two rows

  __device__ void add(uint32 scales) {
    const uint32 magnitudes = scales & ~kMinus;
    largest = max_of_halves(largest, magnitudes);
    least = min_of_halves(least, add_halves(magnitudes, 0xffffffffu));
  }
  __device__ bool was_left() const {
    constexpr uint32 kEnd = 127 - SmallScale::kTimes + 127, kFirst = 127 - 126 - SmallScale::kPower;
    const uint32 high = max(largest & 0xffffu, largest >> 16);
    const uint32 low = min(least & 0xffffu, least >> 16);
    return high >= kEnd << 7 || low < (kFirst << 7) - 1;
  }
};

// Bit 7 of each byte of a word that to_pairs does not convert: NaN of e4m3.
template <class D> struct HasNonfiniteBytes { static const bool value = false; };
template <> struct HasNonfiniteBytes<e4m3> { static const bool value = !kConvertsE4m3; };
__device__ inline uint32 nonfinite_bytes(uint32 word) {
  return ((word & 0x7f7f7f7fu) + 0x01010101u) & 0x80808080u;
}
