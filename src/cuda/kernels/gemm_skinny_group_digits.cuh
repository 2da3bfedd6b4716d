// Products with few rows by warpgroups (gemm_skinny_group.cuh): a chunk's products of 4-bit weights
// and the digits of x (gemm_skinny_digits.cuh), as integers of 8 bits, exactly.
//
// A word of 8 weights becomes two words of 4, each 16 times the weight: the upper halves of its
// bytes as they stand, and the lower ones moved up. Sums of a step are below 2^22 for each digit.
// While the products of a piece run, the next is converted, and the sums of the one before become
// floats.
#pragma once

#include "lib/ptx_memory.cuh"

static const int kOwnSums = WGMMA_N / 2;  // of a piece, 4 of each digit of 8 rows of x
// In one turn of a loop.
static const int kTurnPieces = kAllPieces <= 8 ? kAllPieces : 8;
static_assert(kDigits == 3 && kImageTiles == kFewTiles);

// Powers of two of rows 2 t and 2 t + 1 of each 8 of x, the same for all pieces of a step.
struct StepFactors {
  float of_x[kImageTiles][2];

  __device__ void load(const GroupLane& lane, int number) {
    const int block = (lane.step + number * kWarpsK) * kImageTiles;
    const uint8* const from =
        lane.stage + kFirstX + kFirstPower + block * kPowerBytes + threadIdx.x % 4 * 8;
#pragma unroll
    for (int j = 0; j < kImageTiles; ++j) {
      const uint2 both = *(const uint2*)(from + j * kPowerBytes);
      of_x[j][0] = __uint_as_float(both.x);
      of_x[j][1] = __uint_as_float(both.y);
    }
  }
};

__device__ inline void bytes_of_packets(const Words (&low_high)[2], uint32 (&factors)[kSlices][4]) {
  constexpr uint32 kUpper = 0xf0f0f0f0u;
#pragma unroll
  for (int w = 0; w < kSlices; ++w)
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const uint32 word = low_high[half].words[w];
      factors[w][half] = word << 4 & kUpper;
      factors[w][2 + half] = word & kUpper;
    }
}
__device__ inline void multiply_piece(int (&own)[kOwnSums], const uint32 (&factors)[kSlices][4],
                                      uint64 x) {
  fence_products();
#pragma unroll
  for (int c = 0; c < kSlices; ++c)
    multiply(own, factors[c], advance_descriptor(x, c * kSliceBytes), c > 0);
  commit_products();
}
// The two higher digits as one integer, below 2^30.
__device__ inline void add_digits(float (&sums)[kHalf], int (&own)[kOwnSums],
                                  const StepFactors& factors, const float (&scales)[2]) {
  keep_in_registers(own);
#pragma unroll
  for (int v = 0; v < kHalf; ++v) {
    const int* const digits = own + v / 4 * (4 * kDigits) + v % 4;
    const float high = (float)(digits[0] * 256 + digits[4]), low = (float)digits[8];
    const float sum = fmaf(high, 256.f, low) * factors.of_x[v / 4][v % 2];
    sums[v] = fmaf(sum, scales[v / 2 % 2], sums[v]);
  }
}

// The products of a chunk. Nothing runs from one turn of the loop to the next: the compiler could
// not tell which registers are in use, and would wait for every product.
__device__ inline void add_stage(const GroupLane& lane, GroupSums& all) {
  constexpr int kOfStep = kImageTiles * kBlockBytes;
  const uint64 x =
      matrix_descriptor<32>(lane.stage + kFirstX + lane.step * kOfStep, 0, kPlaneBytes);
  uint32 bytes[2][kSlices][4];
  int own[2][kOwnSums];
  float scales[2][2];
  StepFactors factors[2];
  Words packets[2];
  lane.packets(0, 0, packets);
  bytes_of_packets(packets, bytes[0]);
#pragma unroll 1
  for (int first = 0; first < kAllPieces; first += kTurnPieces) {
#pragma unroll
    for (int n = 0; n < kTurnPieces; ++n) {
      const int tile = n % kTiles, number = (first + n) / kTiles;  // of the warpgroup's steps
      const bool has_next = n + 1 < kTurnPieces || first + kTurnPieces < kAllPieces;
      if (has_next) lane.packets((first + n + 1) / kTiles, (n + 1) % kTiles, packets);
      lane.scales(number, tile, scales[n % 2]);
      if (tile == 0) factors[n / kTiles % 2].load(lane, number);
      multiply_piece(own[n % 2], bytes[n % 2], advance_descriptor(x, number * (kWarpsK * kOfStep)));
      wait_for_products<1>();  // of the piece before
      if (n > 0)
        add_digits(all.sums[(n - 1) % kTiles], own[(n - 1) % 2], factors[(n - 1) / kTiles % 2],
                   scales[(n - 1) % 2]);
      if (has_next) bytes_of_packets(packets, bytes[1 - n % 2]);
    }
    wait_for_products<0>();
    add_digits(all.sums[kTiles - 1], own[1], factors[(kTurnPieces - 1) / kTiles % 2], scales[1]);
  }
}

// A packet of each of the warp's rows, of some step, from global memory. Rows past the last one are
// read as it is: their sums go nowhere.
__device__ inline void load_again(const Args& args, const GroupLane& lane, const Place& place,
                                  int step, Words (&packets)[kPackets], float (&scales)[kPackets]) {
  const int64 group = (int64)step * kStepDepth / kScaleBlock;
#pragma unroll
  for (int p = 0; p < kPackets; ++p) {
    const int64 row = min(place.first_row + lane.row + 8 * p, (Index)args.many - 1);
    const uint8* const from = (const uint8*)args.weights + row * args.row_stride * kBits / 8 +
                              step * kStepBytes + threadIdx.x % 4 * kPacketBytes;
    packets[p].piece = load_once((const Piece*)from);
    scales[p] =
        (float)widen(S(), ((const typename S::Word*)args.scales)[group * args.scale_stride + row]);
  }
}
// At the end of a unit: where x is infinity or NaN, all sums of the warp are made once more, as
// pairs of 16 bits by the instructions of a warp.
__device__ inline void mend_sums(const Args& args, const GroupWalk& walk, const GroupLane& lane,
                                 const Place& place, GroupSums& all) {
  bool is_lost = false;
#pragma unroll
  for (int i = 0; i < kTiles; ++i)
#pragma unroll
    for (int v = 0; v < kHalf; ++v) is_lost |= all.sums[i][v] != all.sums[i][v];
  if (!__any_sync(0xffffffffu, is_lost)) return;
  all = GroupSums();
  const int end = min((walk.first_chunk + walk.chunks) * kSteps, (int)args.depth / kStepDepth);
#pragma unroll 1
  for (int step = walk.first_chunk * kSteps + lane.step; step < end; step += kWarpsK) {
    Words packets[kPackets];
    float scales[kPackets];
    load_again(args, lane, place, step, packets, scales);
    const uint16* const x = (const uint16*)args.x + step * kStepDepth + threadIdx.x % 4 * kOwn;
    Products own;
    own.template add<true>(
        args, place, packets,
        [&](int u, int m) {
          return in_order_of_weights(
              load_read_only((const uint4*)(x + m * args.x_row_stride + u * kUnit)));
        },
        Scales{});
#pragma unroll
    for (int i = 0; i < kTiles; ++i)
#pragma unroll
      for (int v = 0; v < kHalf; ++v)
        all.sums[i][v] = fmaf(own.sums[i][v / 4][v % 4], scales[2 * i + v / 2 % 2], all.sums[i][v]);
  }
}
