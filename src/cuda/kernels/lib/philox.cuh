// Philox4x32-10, the counter-based generator of Salmon et al. (SC'11): the same numbers as
// base/philox.hpp gives on the host.
#pragma once

#include "lib/integers.cuh"

// 128 random bits for a 64-bit counter under a 64-bit key.
__device__ inline uint4 philox4x32(uint64 counter, uint64 key) {
  uint32 x = (uint32)counter, y = (uint32)(counter >> 32), z = 0, w = 0;
  uint32 key0 = (uint32)key, key1 = (uint32)(key >> 32);
#pragma unroll
  for (int round = 0; round < 10; ++round) {
    const uint64 product0 = (uint64)0xD2511F53u * x, product1 = (uint64)0xCD9E8D57u * z;
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
