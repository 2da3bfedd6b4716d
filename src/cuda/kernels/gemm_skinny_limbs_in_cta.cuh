// Skinny GEMM on warpgroups: repack warps that decompose x of each stage into int8 limbs in place
// (gemm_skinny_limbs.cuh). TMA loads a block (128 k of 8 rows) as two boxes of 64 k, swizzled over
// 128 bytes, into the space of two of its three limbs. Where x has fewer than 8 rows, TMA loads
// kRepackRows of them, and a warp decomposes 8 / kRepackRows blocks at a time.
#pragma once

#include "lib/ptx_tma.cuh"

static const int kBoxBytes = kRepackRows * 128;
static const int kUnitBlocks = 8 / kRepackRows;
static_assert(kRepackRows == 8 || kPackedXTiles == 1);
// Units per iteration: two, so that the latency of one hides behind the other.
static const int kUnitsTogether = kRepackUnits > kRepackWarps ? 2 : 1;

// By a whole warp: issues the TMA loads of x of a chunk, which complete on `x_full`.
template <class SomeArgs>  // with the member map_x
__device__ inline void load_packed_x(const SomeArgs& args, int chunk, uint8* to, Mbarrier*,
                                     Mbarrier* x_full) {
  if (threadIdx.x % 32 == 0) {
    arrive_and_expect_tx(x_full, kBlocksX * 2 * kBoxBytes);
#pragma unroll
    for (int b = 0; b < kBlocksX; ++b) {
      const int step = b / kPackedXTiles, tile = b % kPackedXTiles;
      const int at[3] = {0, 8 * tile, (chunk * kSteps + step) * 2};
      load_box(to + b * kBlockBytes, args.map_x, x_full, at);
    }
  }
  __syncwarp();
}

// A lane decomposes, of one row, the k of word `slice` of the packets of the four lanes t: 4 * 8
// elements, which become 16 bytes of a slice for each limb and half.
struct RepackLane {
  int row, slice;
  int from, to;  // byte offsets in a unit; XORed for the other 32 k of a box and the other half
  int power;     // byte offset among the powers of two of a unit

  __device__ RepackLane() {
    const int lane = threadIdx.x % 32, block = lane / (4 * kRepackRows);
    row = lane % kRepackRows;
    slice = lane / kRepackRows % 4;
    from = block * kBlockBytes + row * 128 + (slice ^ row) * 16;
    to = block * kBlockBytes + slice * kSliceBytes + row * 32 + row / 4 * 16;
    power = block * kXScaleBytes + row * 4;
  }
  __device__ void read(const uint8* unit, uint4 (&x)[4]) const {
#pragma unroll
    for (int t = 0; t < 4; ++t) {
      const int box = t / 2, half = t % 2;  // the 128-byte swizzle XORs the line number
      x[t] = *(const uint4*)(unit + box * kBoxBytes +
                             (from ^ (half * 4 ^ box * kRepackRows % 8) * 16));
    }
  }
  // The largest magnitude of the lane's row of a block, as a float.
  __device__ float largest(const uint4 (&x)[4]) const {
    const uint32 low = max_magnitudes(T(), largest_pair(x[0]), largest_pair(x[1]));
    const uint32 high = max_magnitudes(T(), largest_pair(x[2]), largest_pair(x[3]));
    return largest_of_row<kRepackRows, 4 * kRepackRows>(max_magnitudes(T(), low, high));
  }
  __device__ void write(uint8* unit, const uint4 (&x)[4], const LimbScale& scale) const {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      uint32 words[4][kLimbs];
#pragma unroll
      for (int t = 0; t < 4; ++t) scale.limbs(x[t], half, words[t]);
#pragma unroll
      for (int d = 0; d < kLimbs; ++d)
        *(uint4*)(unit + d * kPlaneBytes + (to ^ half * 16)) =
            make_uint4(words[0][d], words[1][d], words[2][d], words[3][d]);
    }
  }
};

// Decomposes this warp's units of a stage, from `first_unit` on.
__device__ inline void repack(const RepackLane& lane, int first_unit, uint8* packed_x) {
  static_assert(kSlices == 4 && 2 * kBoxBytes <= kBlockBytes);
  constexpr int kEach = kRepackWarps * kUnitsTogether;
#pragma unroll 1
  for (int first = first_unit; first < kRepackUnits; first += kEach) {
    const auto number = [&](int n) { return first + n * kRepackWarps; };
    // A constant where all warps have equally many units: without a branch the compiler interleaves
    // the two units.
    const auto inside = [&](int n) {
      return n == 0 || kRepackUnits % kEach == 0 || number(n) < kRepackUnits;
    };
    const auto unit = [&](int n) { return packed_x + number(n) * (kUnitBlocks * kBlockBytes); };
    uint4 x[kUnitsTogether][4];
    float largest[kUnitsTogether];
#pragma unroll
    for (int n = 0; n < kUnitsTogether; ++n)
      if (inside(n)) lane.read(unit(n), x[n]);
#pragma unroll
    for (int n = 0; n < kUnitsTogether; ++n)
      if (inside(n)) largest[n] = lane.largest(x[n]);
    __syncwarp();  // all lanes have read the units before any lane overwrites them
#pragma unroll
    for (int n = 0; n < kUnitsTogether; ++n)
      if (inside(n)) {
        const LimbScale scale(largest[n]);
        lane.write(unit(n), x[n], scale);
        if (lane.slice == 0)
          *(float*)(packed_x + kFirstXScale + number(n) * (kUnitBlocks * kXScaleBytes) +
                    lane.power) = scale.factor;
      }
  }
}
typedef RepackLane StageLane;
