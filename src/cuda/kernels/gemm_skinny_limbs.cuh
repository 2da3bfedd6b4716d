// Skinny GEMM on warpgroups with 4-bit weights multiplied as integers
// (gemm_skinny_warpgroup_limbs.cuh): int8 limb decomposition of x. A pre-pass launch decomposes x
// once (gemm_skinny_limbs_prepass.cuh), or warps of each CTA decompose it in the stages that TMA
// fills (gemm_skinny_limbs_in_cta.cuh).
//
// Within a step of 128 elements of K, a row of x is a power of two times signed integers of 22
// bits, which are three int8 limbs: d2 2^16 + d1 2^8 + d0. The largest magnitude of the step uses
// all 22 bits. bf16 (8-bit significand) is therefore exact down to 2^-14 of it, f16 (11 bits) down
// to 2^-11; the error of smaller values is at most 2^-22 of it, a few roundings of an f32 sum.
//
// Packed layout: [step][8 rows of x: a block][limb, d2 first][slice of 32 k][row: 32 bytes],
// swizzled over 32 bytes. Behind the limbs of a chunk follow the powers of two as floats, [block][8
// rows]; NaN where the row has an infinity or NaN, whose limbs are then undefined. K past the end
// of x is zero. Rows past the end are undefined: their accumulators are never read.
#pragma once

#include "lib/ptx_pairs.cuh"

static const int kStepBytes = 4 * kPacketBytes;  // of a row, per step of a warpgroup
static const int kSteps = kChunk / kStepBytes;
static const int kChunkK = kChunk * 8 / kBits;
static const int kLimbs = 3;
static const int kSliceBytes = 8 * 32;
static const int kSlices = kWords;             // of a step: one per word of the lanes' packets
static const bool kRepacksInCta = kHelpers > 1;  // else in a pre-pass launch
static const int kPlaneBytes = kSlices * kSliceBytes;  // one limb of a block
static const int kBlockBytes = kLimbs * kPlaneBytes;
static const int kPackedXTiles = kColumns / 8;
static const int kBlocksX = kSteps * kPackedXTiles;  // of a chunk
// Work items of repack warps: kRepackRows rows of 8 / kRepackRows blocks.
static const int kRepackUnits = kBlocksX * kRepackRows / 8;
static const int kFirstXScale = kBlocksX * kBlockBytes;
static const int kXScaleBytes = 8 * 4;
static const int kAllXScaleBytes = kBlocksX * kXScaleBytes;
static const int kPackedXBytes =
    kFirstXScale + (kAllXScaleBytes + 127) / 128 * 128;  // TMA boxes follow
static_assert(kBits == 4 && kScaled && kScaleBlock % kStepK == 0 && kStepK == 128);

// The largest magnitudes of the four low halves and of the four high halves of 8 elements of x.
__device__ inline uint32 largest_pair(const uint4& x) {
  return max_magnitudes(T(), max_magnitudes(T(), x.x, x.y), max_magnitudes(T(), x.z, x.w));
}
// By a whole warp: the largest magnitude of a row in a step, as a float. Lanes that differ in the
// bits kFirst, 2 kFirst, ..., kEnd / 2 hold parts of the same row.
template <int kFirst, int kEnd>
__device__ inline float largest_of_row(uint32 pair) {
  pair = max_magnitudes(T(), pair, pair >> 16);
#pragma unroll
  for (int with = kFirst; with < kEnd; with *= 2)
    pair = max_magnitudes(T(), pair, __shfl_xor_sync(0xffffffffu, pair, with));
  return widen(T(), (uint16)(pair & 0x7fffu));
}

// The power of two of a row in a step.
struct LimbScale {
  float part;    // x * part * 2^16 is the integer, below 2^22
  float factor;  // d0 * (16 * weight) * factor is the product; NaN if x is not finite

  __device__ explicit LimbScale(float largest) {
    // 2^exponent <= largest, or one more where three limbs would overflow (see kMiddle). No bf16
    // has a magnitude below 2^-133.
    constexpr int kBias = 127, kLeast = kBias - 112;
    constexpr uint32 kUpTo = 0x20000;
    const int biased = max((int)((__float_as_uint(largest) + kUpTo) >> 23), kLeast);
    part = __uint_as_float((uint32)(2 * kBias + 5 - biased) << 23);
    // 2^(exponent - 21), over 2^4 because integer weights are multiplied by 16. In two steps: the
    // result may be subnormal.
    factor = __uint_as_float((uint32)(biased - 1) << 23) * 0x1p-24f;
    if (!(largest < __uint_as_float(0x7f800000u))) factor = quiet_nan();
  }
  // Limbs d2, d1 and d0, one word each, of the elements of x that pair with the low nibbles (half =
  // 1: high nibbles) of a word of weights: elements 0, 2, 4, 6 (1, 3, 5, 7) of eight.
  __device__ void limbs(const uint4& x, int half, uint32 (&words)[kLimbs]) const {
    // kMiddle + x * part lies between 128 and 256, a multiple of 2^-16 whose low 24 bits are the
    // integer + 0x408080: each byte is a limb + 128 (the highest + 64), as long as integers are
    // below 0x3f7f80.
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
