// Products with few rows by warpgroups (gemm_skinny_group.cuh): a chunk's products of 4-bit weights
// and the digits of x (gemm_skinny_digits.cuh), as integers of 8 bits, exactly.
//
// A word of 8 weights becomes two words of 4, each 16 times the weight: the upper halves of its
// bytes as they stand, and the lower ones moved up. Sums of a step are below 2^22 for each digit.
// While the products of a piece run, the next is converted, and the sums of the one before become
// floats.
#pragma once

#include "lib/ptx_memory.cuh"
#include "lib/ptx_mma.cuh"
#include "lib/short_weights.cuh"

static const int kOwnSums = WGMMA_N / 2;  // of a piece, 4 of each digit of 8 rows of x
// In one turn of a loop. kOwnPlaces: pieces whose sums are there at a time, one where registers are
// few; it is then other warpgroups whose products run meanwhile.
static const int kMostPieces = kOwnPlaces == 1 ? 4 : 8;
static const int kTurnPieces = kAllPieces <= kMostPieces ? kAllPieces : kMostPieces;
static const int kUsedSums = 4 * kFewTiles;  // of a lane: nobody looks at 8 rows that x has not
static_assert(kDigits == 3 && kUsedSums <= kHalf);

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
  for (int v = 0; v < kUsedSums; ++v) {
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
  int own[kOwnPlaces][kOwnSums];
  float scales[kOwnPlaces][2];
  StepFactors factors[kOwnPlaces];
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
      const auto load_factors = [&] {
        lane.scales(number, tile, scales[n % kOwnPlaces]);
        if (tile == 0 || kOwnPlaces == 1) factors[n / kTiles % kOwnPlaces].load(lane, number);
      };
      if constexpr (kOwnPlaces == 2) load_factors();
      multiply_piece(own[n % kOwnPlaces], bytes[n % 2],
                     advance_descriptor(x, number * (kWarpsK * kOfStep)));
      if constexpr (kOwnPlaces == 2) {
        wait_for_products<1>();  // of the piece before
        if (n > 0)
          add_digits(all.sums[(n - 1) % kTiles], own[(n - 1) % 2], factors[(n - 1) / kTiles % 2],
                     scales[(n - 1) % 2]);
      }
      if (has_next) bytes_of_packets(packets, bytes[1 - n % 2]);
      if constexpr (kOwnPlaces == 1) load_factors();  // as late as possible: registers
      if (kOwnPlaces == 1 || n + 1 == kTurnPieces) {
        wait_for_products<0>();
        add_digits(all.sums[tile], own[n % kOwnPlaces], factors[n / kTiles % kOwnPlaces],
                   scales[n % kOwnPlaces]);
      }
    }
  }
}

// The products of a step once more from global memory, as pairs of 16 bits by the instructions of a
// warp: own[i][j] of rows 16 i of the warp and 8 j of x. A word of each packet at a time, so that
// this needs no more registers than what it mends. Rows past the last one are read as it is: their
// sums go nowhere.
__device__ inline void add_again(const Args& args, const GroupLane& lane, const Place& place,
                                 int step, float (&own)[kTiles][kFewTiles][4]) {
  const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
  const Index first_row = place.first_row + lane.row, last_row = (Index)args.many - 1;
#pragma unroll 1
  for (int u = 0; u < kUnits; ++u) {
    const uint16* const x = (const uint16*)args.x + step * kStepDepth + t * kOwn + u * kUnit;
    const uint8* const weights =
        (const uint8*)args.weights + step * kStepBytes + t * kPacketBytes + u * 4;
    uint4 few[kFewTiles];
#pragma unroll
    for (int j = 0; j < kFewTiles; ++j)
      few[j] = in_order_of_weights(
          load_read_only((const uint4*)(x + min(8 * j + g, kFew - 1) * args.x_row_stride)));
#pragma unroll
    for (int i = 0; i < kTiles; ++i) {
      uint32 pairs[2][kPairs];
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int64 row = min(first_row + 16 * i + 8 * half, last_row);
        to_pairs(W(), T(),
                 load_read_only((const uint32*)(weights + row * args.row_stride * kBits / 8)),
                 pairs[half]);
      }
#pragma unroll
      for (int j = 0; j < kFewTiles; ++j)
#pragma unroll
        for (int q = 0; q < kPairs; q += 2) {
          const uint32 a[4] = {pairs[0][q], pairs[1][q], pairs[0][q + 1], pairs[1][q + 1]};
          const uint32 b[2] = {q == 0 ? few[j].x : few[j].z, q == 0 ? few[j].y : few[j].w};
          multiply_add(T(), own[i][j], a, b);
        }
    }
  }
}
// At the end of a unit: where x is infinity or NaN, all sums of the warp are made once more.
__device__ inline void mend_sums(const Args& args, const GroupWalk& walk, const GroupLane& lane,
                                 const Place& place, GroupSums& all) {
  bool is_lost = false;
  all.visit([&](int, int, float sum) { is_lost |= sum != sum; });
  if (!__any_sync(0xffffffffu, is_lost)) return;
  all = GroupSums();
  const int end = min((walk.first_chunk + walk.chunks) * kSteps, (int)args.depth / kStepDepth);
#pragma unroll 1
  for (int step = walk.first_chunk * kSteps + lane.step; step < end; step += kWarpsK) {
    float own[kTiles][kFewTiles][4] = {};
    add_again(args, lane, place, step, own);
    const typename S::Word* const scales =
        (const typename S::Word*)args.scales + step * kStepDepth / kScaleBlock * args.scale_stride;
#pragma unroll
    for (int i = 0; i < kTiles; ++i)
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int64 row = min(place.first_row + lane.row + 16 * i + 8 * half, (Index)args.many - 1);
        const float scale = (float)widen(S(), scales[row]);
#pragma unroll
        for (int j = 0; j < kFewTiles; ++j)
#pragma unroll
          for (int v = 2 * half; v < 2 * half + 2; ++v)
            all.sums[i][4 * j + v] = fmaf(own[i][j][v], scale, all.sums[i][4 * j + v]);
      }
  }
}
