// Philox4x32-10, the counter-based generator of Salmon et al. (SC'11): the same bits as
// base/philox.hpp on the host.
#pragma once

#include "lib/integers.cuh"
#include "lib/ptx_math.cuh"

// The round keys, two of 32 bits each: derived from a seed, or precomputed by the host, which saves
// two additions per round.
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

// Product of the first round, in which half of the state is 0. It is linear in the counter:
// consecutive counters have products that differ by kFirstFactor.
static const uint32 kFirstFactor = 0xD2511F53u;
__device__ inline uint64 first_product(uint32 counter) {
  return multiply_wide(kFirstFactor, counter);
}
// 128 random bits for a 64-bit counter; `product` is the first product of its lower half.
template <class Keys>
__device__ inline uint4 philox4x32(uint64 product, uint32 upper, const Keys& keys) {
  uint32 x = upper ^ keys.first(0), y = 0;
  uint32 z = (uint32)(product >> 32) ^ keys.second(0), w = (uint32)product;
#pragma unroll
  for (int round = 1; round < 10; ++round) {
    const uint64 product0 = multiply_wide(kFirstFactor, x);
    const uint64 product1 = multiply_wide(0xCD9E8D57u, z);
    x = (uint32)(product1 >> 32) ^ y ^ keys.first(round);
    y = (uint32)product1;
    z = (uint32)(product0 >> 32) ^ w ^ keys.second(round);
    w = (uint32)product0;
  }
  return make_uint4(x, y, z, w);
}
template <class Keys>
__device__ inline uint4 philox4x32(uint64 counter, const Keys& keys) {
  return philox4x32(first_product((uint32)counter), (uint32)(counter >> 32), keys);
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

// Counters before that of element `index`. Indices are never negative; 32-bit ones are divided as
// unsigned.
template <class Index>
__device__ inline uint64 counters_before(Index index) {
  return sizeof(Index) == 4 ? (uint32)index / 4 : (uint64)index / 4;
}
// The bits of kCount elements from `index` on, which is a multiple of kCount. kOneUpper: all
// counters of the stream have the same upper 32 bits, so that their contribution is computed once
// per thread, and no counter carries.
template <bool kOneUpper, class Stream, int kCount, class Index>
__device__ inline void random_row(const Stream& stream, Index index, uint32 (&to)[kCount]) {
  const uint32 upper = (uint32)(stream.offset >> 32);
  const uint64 product = first_product((uint32)stream.offset + (uint32)counters_before(index));
  if constexpr (kCount % 4 == 0) {
#pragma unroll
    for (int l = 0; l < kCount; l += 4) {
      const uint64 counter = stream.offset + (counters_before(index) + l / 4);
      const uint4 bits =
          kOneUpper ? philox4x32(product + (uint64)kFirstFactor * (l / 4), upper, stream.keys)
                    : philox4x32(counter, stream.keys);
      to[l] = bits.x;
      to[l + 1] = bits.y;
      to[l + 2] = bits.z;
      to[l + 3] = bits.w;
    }
  } else if constexpr (kCount == 2) {
    const uint4 bits = kOneUpper
                           ? philox4x32(product, upper, stream.keys)
                           : philox4x32(stream.offset + counters_before(index), stream.keys);
    const bool is_second = (index & 2) != 0;
    to[0] = is_second ? bits.z : bits.x;
    to[1] = is_second ? bits.w : bits.y;
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
