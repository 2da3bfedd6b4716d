// Philox4x32-10, the counter-based generator of Salmon et al. (SC'11): the same numbers as
// base/philox.hpp gives on the host.
#pragma once

#include "lib/integers.cuh"
#include "lib/ptx_math.cuh"

// 128 random bits for a 64-bit counter under a 64-bit key.
__device__ inline uint4 philox4x32(uint64 counter, uint64 key) {
  uint32 x = (uint32)counter, y = (uint32)(counter >> 32), z = 0, w = 0;
  uint32 key0 = (uint32)key, key1 = (uint32)(key >> 32);
#pragma unroll
  for (int round = 0; round < 10; ++round) {
    const uint64 product0 = multiply_wide(0xD2511F53u, x);
    const uint64 product1 = multiply_wide(0xCD9E8D57u, z);
    x = (uint32)(product1 >> 32) ^ y ^ key0;
    y = (uint32)product1;
    z = (uint32)(product0 >> 32) ^ w ^ key1;
    w = (uint32)product0;
    key0 += 0x9E3779B9u;
    key1 += 0xBB67AE85u;
  }
  return make_uint4(x, y, z, w);
}
// 32 random bits for element `index` of a stream.
__device__ inline uint32 philox_element(uint64 seed, uint64 offset, uint64 index) {
  const uint4 bits = philox4x32(offset + index / 4, seed);
  const int lane = (int)(index % 4);
  return lane == 0 ? bits.x : lane == 1 ? bits.y : lane == 2 ? bits.z : bits.w;
}
// Uniform in (0, 1), exact in f32: 24 bits.
__device__ inline float uniform_open(uint32 bits) {
  return ((float)(bits >> 9) + 0.5f) * 1.1920928955078125e-7f;
}
// Whether element `index` of a Bernoulli stream is 1.
__device__ inline bool bernoulli(uint64 seed, uint64 offset, uint64 index, float probability) {
  return uniform_open(philox_element(seed, offset, index)) < probability;
}

struct RandomStream {
  uint64 seed, offset;
  __device__ uint32 bits(int64 index) const {
    return philox_element(seed, offset, (uint64)index);
  }
  __device__ float uniform(int64 index) const { return uniform_open(bits(index)); }
};

// The counter of element `index`. kOneUpper: all counters of the stream have the same upper 32
// bits, and what follows from these alone is computed once per thread.
template <bool kOneUpper, class Index>
__device__ inline uint64 counter_of(const RandomStream& stream, Index index) {
  // Indices are never negative; of 32 bits, they are divided as such.
  const uint64 quarter = sizeof(Index) == 4 ? (uint32)index / 4 : (uint64)index / 4;
  if constexpr (!kOneUpper) return stream.offset + quarter;
  return (stream.offset & 0xffffffff00000000ull) | ((uint32)stream.offset + (uint32)quarter);
}
// The bits of kCount elements from `index` on, which is a multiple of kCount.
template <bool kOneUpper, int kCount, class Index>
__device__ inline void random_row(const RandomStream& stream, Index index, uint32 (&to)[kCount]) {
  if constexpr (kCount % 4 == 0) {
#pragma unroll
    for (int l = 0; l < kCount; l += 4) {
      const uint4 bits = philox4x32(counter_of<kOneUpper>(stream, index + l), stream.seed);
      to[l] = bits.x;
      to[l + 1] = bits.y;
      to[l + 2] = bits.z;
      to[l + 3] = bits.w;
    }
  } else if constexpr (kCount == 2) {
    const uint4 bits = philox4x32(counter_of<kOneUpper>(stream, index), stream.seed);
    const bool upper = (index & 2) != 0;
    to[0] = upper ? bits.z : bits.x;
    to[1] = upper ? bits.w : bits.y;
  } else {
#pragma unroll
    for (int l = 0; l < kCount; ++l) to[l] = stream.bits(index + l);
  }
}
template <int kCount>
__device__ inline void random_strided(const RandomStream& stream, int64 index, int64 stride,
                                      uint32 (&to)[kCount]) {
#pragma unroll
  for (int l = 0; l < kCount; ++l) to[l] = stream.bits(index + l * stride);
}

// Box-Muller: elements 2k and 2k + 1 share the uniform numbers u, v of their two lanes,
//   sqrt(-2 log u) cos(2 pi v)  and  sqrt(-2 log u) sin(2 pi v).
template <class R>
__device__ inline R standard_normal(const RandomStream& stream, int64 index) {
  const int64 even = index & ~(int64)1;
  const R radius = sqrt((R)-2 * log((R)stream.uniform(even)));
  const R turns = (R)2 * (R)stream.uniform(even + 1);
  return radius * (index == even ? cospi(turns) : sinpi(turns));
}
