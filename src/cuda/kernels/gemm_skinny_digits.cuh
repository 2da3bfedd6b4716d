// Products with few rows by warpgroups (gemm_skinny_group.cuh), 4-bit weights multiplied as
// integers (gemm_skinny_group_digits.cuh): x as digits, and the launch that makes them.
//
// Of a step, 128 depths, a row of x is a power of two times whole numbers of 23 bits and a sign,
// which are three digits of 8 bits, -128 to 127 each: d2 2^16 + d1 2^8 + d0. The largest number of
// the step has all 23 bits, so numbers of bf16 (8 bits) are exact down to 2^-15 of it, those of f16
// (11 bits) down to 2^-12, and others are 2^-24 of it off at most: what rounding a sum of f32 does.
//
// The image has, for each chunk of the depth, for each 8 rows of x, for each digit from d2 on:
// slices of 32 depths, 32 bytes of each row, swizzled over 32 bytes. Then the powers of two as
// floats, 8 rows of a step one after the other, for each step, for each 8 rows. Where x is infinity
// or NaN, that is NaN instead. Rows and depths that x has not are zeros.
#pragma once

#include "lib/ptx_launch.cuh"
#include "lib/ptx_tma.cuh"

static const int kStepBytes = 4 * kPacketBytes;  // of a row, in a step of a warpgroup
static const int kSteps = kChunk / kStepBytes;
static const int kChunkDepth = kChunk * 8 / kBits;
static const int kDigits = 3;
static const int kSliceBytes = 8 * 32;
static const int kSlices = kWords;             // of a step: one for each word of the lanes' packets
static const bool kOrdersHere = kHelpers > 1;  // in each block
static const int kPitchX = kSteps * kSlices * kSliceBytes;
static const int kImageTiles = kColumns / 8;
static const int kFirstPower = kImageTiles * kDigits * kPitchX;
static const int kPowerBytes = 8 * 4;
static const int kPowers = kImageTiles * kSteps * kPowerBytes;
static const int kImageBytes = kFirstPower + (kPowers + 127) / 128 * 128;  // boxes come behind it
static_assert(kBits == 4 && kScaled && kScaleBlock % kStepDepth == 0 && !kOrdersHere);

// By a warp: x of a chunk, which counts for `full`.
template <class SomeArgs>  // which have the image
__device__ inline void ask_for_image(const SomeArgs& args, int chunk, uint8* to, Mbarrier* full,
                                     Mbarrier*) {
  load_bytes(to, (const uint8*)args.image + (int64)chunk * kImageBytes, kImageBytes, full);
}
struct OrderLane {};
__device__ inline void put_in_order(const OrderLane&, int, uint8*) {}  // it is, when it comes

// The power of two of a row whose largest number has these bits (as a float, without its sign).
struct DigitScale {
  float part, factor;  // numbers x are x * part * 2^16; digits of weights times x are `factor` each

  __device__ explicit DigitScale(uint32 largest) {
    // 2^exponent <= largest, or one more where three digits would not reach: their largest number
    // is 2^23 - 32897. Smaller numbers than 2^-133, which no bf16 has, need no place.
    constexpr int kLeast = -111;
    constexpr uint32 kUpTo = 0x10000;
    const int exponent = max((int)((largest + kUpTo) >> 23) - 127, kLeast);
    part = __uint_as_float((uint32)(6 - exponent + 127) << 23);  // all that is too small: 0
    // Weights are 2^4 times what they are. In two steps: it may be subnormal.
    factor = __uint_as_float((uint32)(exponent - 2 + 127) << 23) * 0x1p-24f;
  }
  // Byte i is digit i.
  __device__ uint32 digits(float x) const {
    const int number = __float2int_rn(x * part * 65536.f);
    return ((uint32)number + 0x808080u) ^ 0x808080u;
  }
};
// Digits 2, 1 and 0 of four numbers, a word each.
__device__ inline void by_digits(const uint32 (&numbers)[4], uint32 (&words)[kDigits]) {
  const uint32 low = __byte_perm(numbers[0], numbers[1], 0x5140);
  const uint32 high = __byte_perm(numbers[2], numbers[3], 0x5140);
  words[2] = __byte_perm(low, high, 0x5410);
  words[1] = __byte_perm(low, high, 0x7632);
  words[0] = __byte_perm(__byte_perm(numbers[0], numbers[1], 0x0062),
                         __byte_perm(numbers[2], numbers[3], 0x0062), 0x5410);
}

// A warp has two rows of a step, a lane 8 depths of one of them: those of word `slice` of the
// packets of lanes t. The lower halves of the word's bytes are depths 0, 2, 4, 6, and they are the
// first 16 depths of a slice, 4 of each lane; the upper halves are the others.
extern "C" __global__ void __launch_bounds__(kOrderWarps * 32)
    gemm_skinny_order(const __grid_constant__ Args args) {
  let_next_launch_start();
  wait_for_launch_before();
  constexpr int kRowPairs = kColumns / 2;
  const int lane = threadIdx.x % 32, unit = lane % 16, t = unit / kSlices, slice = unit % kSlices;
  const int number = blockIdx.x * kOrderWarps + threadIdx.x / 32, along = number / kRowPairs;
  const int chunk = along / kSteps, step = along % kSteps;
  const int m = number % kRowPairs * 2 + lane / 16, tile = m / 8, row = m % 8;
  if (chunk >= (int)args.rounds) return;

  const int depth = along * kStepDepth + unit * 8;
  union {
    uint4 piece;
    uint16 words[8];
  } x;
  x.piece = make_uint4(0u, 0u, 0u, 0u);
  if (m < kFew && depth < (int)args.depth)
    x.piece = *(const uint4*)((const uint16*)args.x + (int64)m * args.x_row_stride + depth);
  uint32 largest = 0;
#pragma unroll
  for (int i = 0; i < 8; ++i)
    largest = max(largest, __float_as_uint(widen(T(), x.words[i])) & 0x7fffffffu);
#pragma unroll
  for (int with = 1; with < 16; with *= 2)
    largest = max(largest, __shfl_xor_sync(0xffffffffu, largest, with));
  const bool is_finite = largest < 0x7f800000u;
  const DigitScale scale(is_finite ? largest : 0u);

  uint8* const image = (uint8*)args.image + (int64)chunk * kImageBytes;
  uint8* const to = image + tile * (kDigits * kPitchX) + (step * kSlices + slice) * kSliceBytes +
                    row * 32 + t * 4;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    uint32 numbers[4], words[kDigits];
#pragma unroll
    for (int i = 0; i < 4; ++i)
      numbers[i] = is_finite ? scale.digits(widen(T(), x.words[2 * i + half])) : 0u;
    by_digits(numbers, words);
#pragma unroll
    for (int d = 0; d < kDigits; ++d)
      *(uint32*)(to + d * kPitchX + (half ^ row / 4) * 16) = words[d];
  }
  if (unit == 0)
    *(float*)(image + kFirstPower + (tile * kSteps + step) * kPowerBytes + row * 4) =
        is_finite ? scale.factor : quiet_nan();
}
