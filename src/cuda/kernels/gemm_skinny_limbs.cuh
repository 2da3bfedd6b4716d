// Products with few rows by warpgroups (gemm_skinny_warpgroup.cuh), 4-bit weights multiplied as
// integers (gemm_skinny_warpgroup_limbs.cuh): x as digits. A launch of its own makes this image of x
// once (gemm_skinny_limbs_prepass.cuh), or warps of each block make it of what the copy engine has
// brought to a stage (gemm_skinny_limbs_in_cta.cuh).
//
// Of a step, 128 depths, a row of x is a power of two times whole numbers of 22 bits and a sign,
// which are three digits of 8 bits, -128 to 127 each: d2 2^16 + d1 2^8 + d0. The largest number of
// the step has all 22 bits, so numbers of bf16 (8 bits) are exact down to 2^-14 of it, those of f16
// (11 bits) down to 2^-11, and others are 2^-22 of it off at most: a few roundings of f32 sums.
//
// The image has, for each step of the depth, for each 8 rows of x (a block), for each digit from d2
// on: slices of 32 depths, 32 bytes of each row, swizzled over 32 bytes. Behind those of a chunk,
// the powers of two as floats, 8 rows of a block one after the other. Where x is infinity or NaN,
// that is NaN instead, and the digits are anything. Depths that x has not are zeros; rows that it
// has not may be anything, nobody looks at their sums.
#pragma once

#include "lib/ptx_pairs.cuh"

static const int kStepBytes = 4 * kPacketBytes;  // of a row, in a step of a warpgroup
static const int kSteps = kChunk / kStepBytes;
static const int kChunkK = kChunk * 8 / kBits;
static const int kLimbs = 3;
static const int kSliceBytes = 8 * 32;
static const int kSlices = kWords;             // of a step: one for each word of the lanes' packets
static const bool kRepacksInCta = kHelpers > 1;  // in each block
static const int kPlaneBytes = kSlices * kSliceBytes;  // a digit of a block
static const int kBlockBytes = kLimbs * kPlaneBytes;
static const int kPackedXTiles = kColumns / 8;
static const int kBlocksX = kSteps * kPackedXTiles;  // of a chunk
// That a warp of a block makes at a time: kRepackRows rows of 8 / kRepackRows blocks.
static const int kRepackUnits = kBlocksX * kRepackRows / 8;
static const int kFirstXScale = kBlocksX * kBlockBytes;
static const int kXScaleBytes = 8 * 4;
static const int kAllXScaleBytes = kBlocksX * kXScaleBytes;
static const int kPackedXBytes = kFirstXScale + (kAllXScaleBytes + 127) / 128 * 128;  // boxes come behind it
static_assert(kBits == 4 && kScaled && kScaleBlock % kStepK == 0 && kStepK == 128);

// Of eight numbers of x the two that have the largest magnitudes of their halves of words.
__device__ inline uint32 largest_pair(const uint4& x) {
  return max_magnitudes(T(), max_magnitudes(T(), x.x, x.y), max_magnitudes(T(), x.z, x.w));
}
// By a warp: as a float, the largest magnitude of a row of a step, of which lanes have a part each;
// lanes kFirst, 2 kFirst ... up to kEnd apart have parts of the same row.
template <int kFirst, int kEnd>
__device__ inline float largest_of_row(uint32 pair) {
  pair = max_magnitudes(T(), pair, pair >> 16);
#pragma unroll
  for (int with = kFirst; with < kEnd; with *= 2)
    pair = max_magnitudes(T(), pair, __shfl_xor_sync(0xffffffffu, pair, with));
  return widen(T(), (uint16)(pair & 0x7fffu));
}

// The power of two of a row.
struct LimbScale {
  float part;    // numbers x are x * part * 2^16, below 2^22
  float factor;  // what digits 0 of weights times x are, or NaN

  __device__ explicit LimbScale(float largest) {
    // 2^exponent <= largest, or one more where three digits would not reach: see kMiddle. Smaller
    // numbers than 2^-133, which no bf16 has, need no place.
    constexpr int kBias = 127, kLeast = kBias - 112;
    constexpr uint32 kUpTo = 0x20000;
    const int biased = max((int)((__float_as_uint(largest) + kUpTo) >> 23), kLeast);
    part = __uint_as_float((uint32)(2 * kBias + 5 - biased) << 23);
    // 2^(exponent - 21), and weights are 2^4 times what they are. In two steps: it may be
    // subnormal.
    factor = __uint_as_float((uint32)(biased - 1) << 23) * 0x1p-24f;
    if (!(largest < __uint_as_float(0x7f800000u))) factor = quiet_nan();
  }
  // Digits 2, 1 and 0 of the numbers that meet the lower halves (or, half = 1, the upper ones) of
  // the bytes of a word of weights, a word each: numbers 0, 2, 4, 6 of eight (1, 3, 5, 7).
  __device__ void limbs(const uint4& x, int half, uint32 (&words)[kLimbs]) const {
    // Sums of this and x * part, all between 128 and 256, are multiples of 2^-16 whose bits, 24 of
    // them, are the whole number + 0x408080: bytes are digits + 128 (+ 64 the highest), as long as
    // whole numbers are below 0x3f7f80.
    constexpr float kMiddle = 192.f + 0x8080 * 0x1p-16f;
    const uint32 pairs[4] = {x.x, x.y, x.z, x.w};
    uint32 bits[4];
#pragma unroll
    for (int i = 0; i < 4; ++i)
      bits[i] = __float_as_uint(fmaf(widen(T(), (uint16)(pairs[i] >> (16 * half))), part, kMiddle));
    const uint32 first = __byte_perm(bits[0], bits[1], 0x5140);
    const uint32 second = __byte_perm(bits[2], bits[3], 0x5140);
    const uint32 high = __byte_perm(__byte_perm(bits[0], bits[1], 0x0062),
                                    __byte_perm(bits[2], bits[3], 0x0062), 0x5410);
    constexpr uint32 kSigns = 0x80808080u;
    words[0] = (high + 0x40404040u) ^ kSigns;
    words[1] = __byte_perm(first, second, 0x7632) ^ kSigns;
    words[2] = __byte_perm(first, second, 0x5410) ^ kSigns;
  }
};
