// Products with few rows by warpgroups: warps of a block that make digits of x of each stage
// (gemm_skinny_digits.cuh), where it is. The copy engine brings a block (128 depths of 8 rows) as
// two boxes of 64 depths, swizzled over 128 bytes, to where two of its three digits will be.
#pragma once

#include "lib/ptx_tma.cuh"

static const int kBoxBytes = 8 * 128;
// At a time, so that one waits while the other goes on.
static const int kBlocksTogether = kBlocksX > kOrderWarps ? 2 : 1;

// By a warp: x of a chunk, which counts for `brought` and becomes digits there.
template <class SomeArgs>  // which have map_x
__device__ inline void ask_for_image(const SomeArgs& args, int chunk, uint8* to, Mbarrier*,
                                     Mbarrier* brought) {
  if (threadIdx.x % 32 == 0) {
    arrive_and_expect(brought, kBlocksX * 2 * kBoxBytes);
#pragma unroll
    for (int b = 0; b < kBlocksX; ++b) {
      const int step = b / kImageTiles, tile = b % kImageTiles;
      const int at[3] = {0, 8 * tile, (chunk * kSteps + step) * 2};
      load_box(to + b * kBlockBytes, args.map_x, brought, at);
    }
  }
  __syncwarp();
}

// A lane has, of one row, the depths of word `slice` of the packets of the four lanes that share
// rows of weights: four times 8, of which 16 bytes of a slice are made for each digit and half.
struct OrderLane {
  int row, slice;
  int from, to;  // bytes of a block; of the other 32 depths of a box, of the other half

  __device__ OrderLane() {
    const int lane = threadIdx.x % 32;
    row = lane % 8;
    slice = lane / 8;
    from = row * 128 + (slice ^ row) * 16;
    to = slice * kSliceBytes + row * 32 + row / 4 * 16;
  }
  __device__ void read(const uint8* block, uint4 (&x)[4]) const {
#pragma unroll
    for (int t = 0; t < 4; ++t)
      x[t] = *(const uint4*)(block + t / 2 * kBoxBytes + (from ^ t % 2 * 64));
  }
  // Of the lane's row of the block, as a float.
  __device__ float largest(const uint4 (&x)[4]) const {
    const uint32 low = max_magnitudes(T(), largest_pair(x[0]), largest_pair(x[1]));
    const uint32 high = max_magnitudes(T(), largest_pair(x[2]), largest_pair(x[3]));
    return largest_of_row<8, 32>(max_magnitudes(T(), low, high));
  }
  __device__ void write(uint8* block, const uint4 (&x)[4], const DigitScale& scale) const {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      uint32 words[4][kDigits];
#pragma unroll
      for (int t = 0; t < 4; ++t) scale.digits(x[t], half, words[t]);
#pragma unroll
      for (int d = 0; d < kDigits; ++d)
        *(uint4*)(block + d * kPlaneBytes + (to ^ half * 16)) =
            make_uint4(words[0][d], words[1][d], words[2][d], words[3][d]);
    }
  }
};

// The blocks of a stage that are the warp's, `warp` being its number among those that do this.
__device__ inline void put_in_order(const OrderLane& lane, int warp, uint8* image) {
  static_assert(kSlices == 4 && 2 * kBoxBytes <= kBlockBytes);
  constexpr int kEach = kOrderWarps * kBlocksTogether;
#pragma unroll 1
  for (int first = warp; first < kBlocksX; first += kEach) {
    const auto number = [&](int n) { return first + n * kOrderWarps; };
    // Known where warps have as many blocks: work on two of them mixes where no branch parts it.
    const auto inside = [&](int n) {
      return n == 0 || kBlocksX % kEach == 0 || number(n) < kBlocksX;
    };
    const auto block = [&](int n) { return image + number(n) * kBlockBytes; };
    uint4 x[kBlocksTogether][4];
    float largest[kBlocksTogether];
#pragma unroll
    for (int n = 0; n < kBlocksTogether; ++n)
      if (inside(n)) lane.read(block(n), x[n]);
#pragma unroll
    for (int n = 0; n < kBlocksTogether; ++n)
      if (inside(n)) largest[n] = lane.largest(x[n]);
    __syncwarp();  // all of the blocks has been read
#pragma unroll
    for (int n = 0; n < kBlocksTogether; ++n)
      if (inside(n)) {
        const DigitScale scale(largest[n]);
        lane.write(block(n), x[n], scale);
        if (lane.slice == 0)
          *(float*)(image + kFirstPower + number(n) * kPowerBytes + lane.row * 4) = scale.factor;
      }
  }
}
