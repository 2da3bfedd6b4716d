// Philox4x32-10, the counter-based generator of Salmon et al. (SC'11): the same numbers as
// base/philox.hpp gives on the host.
#pragma once

#include "lib/integers.cuh"
#include "lib/ptx_math.cuh"

// The keys of the rounds, two of 32 bits each: made from a seed, or made before by the host, which
// saves two additions per round.
struct SeedKeys {
  uint64 seed;
  __device__ uint32 first(int round) const { return (uint32)seed + round * 0x9E3779B9u; }
  __device__ uint32 second(int round) const { return (uint32)(seed >> 32) + round * 0xBB67AE85u; }
};
struct GivenKeys {
  const int64* keys;  // the first one in the lower half
  __device__ uint32 first(int round) const { return (uint32)keys[round]; }
  __device__ uint32 second(int round) const { return (uint32)((uint64)keys[round] >> 32); }
};

// 128 random bits for a 64-bit counter.
template <class Keys>
__device__ inline uint4 philox4x32(uint64 counter, const Keys& keys) {
  uint32 x = (uint32)counter, y = (uint32)(counter >> 32), z = 0, w = 0;
#pragma unroll
  for (int round = 0; round < 10; ++round) {
    const uint64 product0 = multiply_wide(0xD2511F53u, x);
    const uint64 product1 = multiply_wide(0xCD9E8D57u, z);
    x = (uint32)(product1 >> 32) ^ y ^ keys.first(round);
    y = (uint32)product1;
    z = (uint32)(product0 >> 32) ^ w ^ keys.second(round);
    w = (uint32)product0;
  }
  return make_uint4(x, y, z, w);
}
// 32 random bits for element `index` of a stream.
template <class Keys>
__device__ inline uint32 philox_element(const Keys& keys, uint64 offset, uint64 index) {
  const uint4 bits = philox4x32(offset + index / 4, keys);
  const int lane = (int)(index % 4);
  return lane == 0 ? bits.x : lane == 1 ? bits.y : lane == 2 ? bits.z : bits.w;
}
// Uniform in (0, 1), exact in f32: 24 bits.
__device__ inline float uniform_open(uint32 bits) {
  return ((float)(bits >> 9) + 0.5f) * 1.1920928955078125e-7f;
}
// Whether element `index` of a Bernoulli stream is 1.
__device__ inline bool bernoulli(uint64 seed, uint64 offset, uint64 index, float probability) {
  return uniform_open(philox_element(SeedKeys{seed}, offset, index)) < probability;
}

template <class Keys>
struct RandomStream {
  Keys keys;
  uint64 offset;
  __device__ uint32 bits(int64 index) const {
    return philox_element(keys, offset, (uint64)index);
  }
  __device__ float uniform(int64 index) const { return uniform_open(bits(index)); }
};

// The counter of element `index`. kOneUpper: all counters of the stream have the same upper 32
// bits, and what follows from these alone is computed once per thread.
template <bool kOneUpper, class Stream, class Index>
__device__ inline uint64 counter_of(const Stream& stream, Index index) {
  // Indices are never negative; of 32 bits, they are divided as such.
  const uint64 quarter = sizeof(Index) == 4 ? (uint32)index / 4 : (uint64)index / 4;
  if constexpr (!kOneUpper) return stream.offset + quarter;
  return (stream.offset & 0xffffffff00000000ull) | ((uint32)stream.offset + (uint32)quarter);
}
// The bits of kCount elements from `index` on, which is a multiple of kCount.
template <bool kOneUpper, class Stream, int kCount, class Index>
__device__ inline void random_row(const Stream& stream, Index index, uint32 (&to)[kCount]) {
  if constexpr (kCount % 4 == 0) {
#pragma unroll
    for (int l = 0; l < kCount; l += 4) {
      const uint4 bits = philox4x32(counter_of<kOneUpper>(stream, index + l), stream.keys);
      to[l] = bits.x;
      to[l + 1] = bits.y;
      to[l + 2] = bits.z;
      to[l + 3] = bits.w;
    }
  } else if constexpr (kCount == 2) {
    const uint4 bits = philox4x32(counter_of<kOneUpper>(stream, index), stream.keys);
    const bool upper = (index & 2) != 0;
    to[0] = upper ? bits.z : bits.x;
    to[1] = upper ? bits.w : bits.y;
  } else {
#pragma unroll
    for (int l = 0; l < kCount; ++l) to[l] = stream.bits(index + l);
  }
}
template <class Stream, int kCount>
__device__ inline void random_strided(const Stream& stream, int64 index, int64 stride,
                                      uint32 (&to)[kCount]) {
#pragma unroll
  for (int l = 0; l < kCount; ++l) to[l] = stream.bits(index + l * stride);
}

// Box-Muller: elements 2k and 2k + 1 share the uniform numbers u, v of their two lanes,
//   sqrt(-2 log u) cos(2 pi v)  and  sqrt(-2 log u) sin(2 pi v).
template <class R, class Stream>
__device__ inline R standard_normal(const Stream& stream, int64 index) {
  const int64 even = index & ~(int64)1;
  const R radius = sqrt((R)-2 * log((R)stream.uniform(even)));
  const R turns = (R)2 * (R)stream.uniform(even + 1);
  return radius * (index == even ? cospi(turns) : sinpi(turns));
}
