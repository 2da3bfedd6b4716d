// Philox4x32-10, the counter-based generator of Salmon et al. (SC'11): the numbers of
// base/philox.hpp. Element i of a stream is lane i % 4 of counter offset + i / 4.
#pragma once

#include "lib/integers.cuh"

struct PhiloxBits {
  uint32 lanes[4];
};

__device__ inline PhiloxBits philox4x32(uint64 counter, uint64 key) {
  uint32 s0 = (uint32)counter, s1 = (uint32)(counter >> 32), s2 = 0, s3 = 0;
  uint32 key0 = (uint32)key, key1 = (uint32)(key >> 32);
#pragma unroll
  for (int round = 0; round < 10; ++round) {
    const uint32 low0 = 0xD2511F53u * s0, high0 = __umulhi(0xD2511F53u, s0);
    const uint32 low1 = 0xCD9E8D57u * s2, high1 = __umulhi(0xCD9E8D57u, s2);
    s0 = high1 ^ s1 ^ key0;
    s1 = low1;
    s2 = high0 ^ s3 ^ key1;
    s3 = low0;
    key0 += 0x9E3779B9u;
    key1 += 0xBB67AE85u;
  }
  return {{s0, s1, s2, s3}};
}

// Uniform in (0, 1), 24 bits: exact.
__device__ inline float uniform_open(uint32 bits) {
  return ((float)(bits >> 9) + 0.5f) * 1.1920928955078125e-7f;
}

// A stream, its elements taken as uniform numbers.
struct RandomStream {
  uint64 seed, offset;
  __device__ float uniform(int64 index) const {
    const PhiloxBits bits = philox4x32(offset + (uint64)index / 4, seed);
    const int lane = (int)(index & 3);
    return uniform_open(lane < 2 ? (lane == 0 ? bits.lanes[0] : bits.lanes[1])
                                 : (lane == 2 ? bits.lanes[2] : bits.lanes[3]));
  }
};

// kCount uniform numbers from element `index` on, which is a multiple of kCount.
template <int kCount>
__device__ inline void uniform_row(const RandomStream& stream, int64 index, float (&to)[kCount]) {
  if constexpr (kCount % 4 == 0) {
#pragma unroll
    for (int l = 0; l < kCount; l += 4) {
      const PhiloxBits bits = philox4x32(stream.offset + (uint64)(index + l) / 4, stream.seed);
#pragma unroll
      for (int lane = 0; lane < 4; ++lane) to[l + lane] = uniform_open(bits.lanes[lane]);
    }
  } else if constexpr (kCount == 2) {
    const PhiloxBits bits = philox4x32(stream.offset + (uint64)index / 4, stream.seed);
    const bool upper = (index & 2) != 0;
    to[0] = uniform_open(upper ? bits.lanes[2] : bits.lanes[0]);
    to[1] = uniform_open(upper ? bits.lanes[3] : bits.lanes[1]);
  } else {
#pragma unroll
    for (int l = 0; l < kCount; ++l) to[l] = stream.uniform(index + l);
  }
}
template <int kCount>
__device__ inline void uniform_strided(const RandomStream& stream, int64 index, int64 stride,
                                       float (&to)[kCount]) {
#pragma unroll
  for (int l = 0; l < kCount; ++l) to[l] = stream.uniform(index + l * stride);
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

// A stream whose elements are taken as uniform numbers.
struct RandomStream {
  uint64 seed, offset;
  __device__ float uniform(int64 index) const {
    return uniform_open(philox_element(seed, offset, (uint64)index));
  }
};

// kCount uniform numbers from element `index` on, which is a multiple of kCount.
template <int kCount>
__device__ inline void uniform_row(const RandomStream& stream, int64 index, float (&to)[kCount]) {
  if constexpr (kCount % 4 == 0) {
#pragma unroll
    for (int l = 0; l < kCount; l += 4) {
      const uint4 bits = philox4x32(stream.offset + (uint64)(index + l) / 4, stream.seed);
      to[l] = uniform_open(bits.x);
      to[l + 1] = uniform_open(bits.y);
      to[l + 2] = uniform_open(bits.z);
      to[l + 3] = uniform_open(bits.w);
    }
  } else if constexpr (kCount == 2) {
    const uint4 bits = philox4x32(stream.offset + (uint64)index / 4, stream.seed);
    const bool upper = (index & 2) != 0;
    to[0] = uniform_open(upper ? bits.z : bits.x);
    to[1] = uniform_open(upper ? bits.w : bits.y);
  } else {
#pragma unroll
    for (int l = 0; l < kCount; ++l) to[l] = stream.uniform(index + l);
  }
}
template <int kCount>
__device__ inline void uniform_strided(const RandomStream& stream, int64 index, int64 stride,
                                       float (&to)[kCount]) {
#pragma unroll
  for (int l = 0; l < kCount; ++l) to[l] = stream.uniform(index + l * stride);
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
