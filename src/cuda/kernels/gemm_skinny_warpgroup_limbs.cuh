// Skinny GEMM on warpgroups (gemm_skinny_warpgroup.cuh): multiplies 4-bit weights by the int8 limbs
// of x (gemm_skinny_limbs.cuh) with integer wgmma, exactly.
//
// A word of 8 weights becomes two words of 4 bytes, each 16 times a weight: the high nibbles in
// place, and the low nibbles shifted up. Accumulators of a step stay below 2^22 per limb. While the
// wgmma of a piece runs, the next piece is converted, and the accumulators of the previous one
// become floats.
#pragma once

#include "lib/ptx_wgmma.cuh"

static const int kLimbAccumulators = Mma::kN / 2;  // of a piece: 4 per limb and 8 rows of x
// Pieces per unrolled iteration. kAccBuffers: pieces with live integer accumulators; one where
// registers are short, in which case other warpgroups keep the tensor cores busy.
static const int kMaxPieces = kAccBuffers == 1 ? 4 : 8;
static const int kUnrolledPieces = kAllPieces <= kMaxPieces ? kAllPieces : kMaxPieces;
static const int kUsedAccumulators = 4 * kTilesM;  // of a lane: tiles of 8 rows that x has
static_assert(kLimbs == 3 && kUsedAccumulators <= kHalf);

// Powers of two of rows 2 t and 2 t + 1 of each 8 rows of x, shared by all pieces of a step.
struct RowScales {
  float of_x[kPackedXTiles][2];

  __device__ void load(const WarpgroupLane& lane, int number) {
    const int block = (lane.step + number * kWarpsK) * kPackedXTiles;
    const uint8* const from =
        lane.stage + kFirstX + kFirstXScale + block * kXScaleBytes + threadIdx.x % 4 * 8;
#pragma unroll
    for (int j = 0; j < kPackedXTiles; ++j) {
      const uint2 both = *(const uint2*)(from + j * kXScaleBytes);
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
__device__ inline void multiply_piece(int (&own)[kLimbAccumulators],
                                      const uint32 (&factors)[kSlices][4], uint64 x) {
  wgmma_fence();
#pragma unroll
  for (int c = 0; c < kSlices; ++c)
    Mma::multiply(own, factors[c], advance_descriptor(x, c * kSliceBytes), c > 0);
  wgmma_commit_group();
}
// Combines the limbs, the two higher ones as one integer below 2^30, scales and accumulates in f32.
__device__ inline void add_limbs(float (&acc)[kHalf], int (&own)[kLimbAccumulators],
                                  const RowScales& factors, const float (&scales)[2]) {
  fence_operand(own);
#pragma unroll
  for (int v = 0; v < kUsedAccumulators; ++v) {
    const int* const limbs = own + v / 4 * (4 * kLimbs) + v % 4;
    const float high = (float)(limbs[0] * 256 + limbs[4]), low = (float)limbs[8];
    const float sum = fmaf(high, 256.f, low) * factors.of_x[v / 4][v % 2];
    acc[v] = fmaf(sum, scales[v / 2 % 2], acc[v]);
  }
}

// Multiplies a chunk. No wgmma is in flight across the loop's back edge: the compiler could not
// prove which registers it uses and would serialise every wgmma.
__device__ inline void add_stage(const WarpgroupLane& lane, WarpgroupAccumulators& all) {
  constexpr int kOfStep = kPackedXTiles * kBlockBytes;
  const uint64 x =
      smem_descriptor<32>(lane.stage + kFirstX + lane.step * kOfStep, 0, kPlaneBytes);
  uint32 bytes[2][kSlices][4];
  int own[kAccBuffers][kLimbAccumulators];
  float scales[kAccBuffers][2];
  RowScales factors[kAccBuffers];
  Words packets[2];
  lane.packets(0, 0, packets);
  bytes_of_packets(packets, bytes[0]);
#pragma unroll 1
  for (int first = 0; first < kAllPieces; first += kUnrolledPieces) {
#pragma unroll
    for (int n = 0; n < kUnrolledPieces; ++n) {
      const int tile = n % kTiles, number = (first + n) / kTiles;  // step of the warpgroup
      const bool has_next = n + 1 < kUnrolledPieces || first + kUnrolledPieces < kAllPieces;
      if (has_next) lane.packets((first + n + 1) / kTiles, (n + 1) % kTiles, packets);
      const auto load_factors = [&] {
        const typename S::Word* const of_rows = lane.scales(number, tile);
        scales[n % kAccBuffers][0] = (float)widen(S(), of_rows[0]);
        scales[n % kAccBuffers][1] = (float)widen(S(), of_rows[8]);
        if (tile == 0 || kAccBuffers == 1) factors[n / kTiles % kAccBuffers].load(lane, number);
      };
      if constexpr (kAccBuffers == 2) load_factors();
      multiply_piece(own[n % kAccBuffers], bytes[n % 2],
                     advance_descriptor(x, number * (kWarpsK * kOfStep)));
      if constexpr (kAccBuffers == 2) {
        wgmma_wait_group<1>();  // the previous piece
        if (n > 0)
          add_limbs(all.acc[(n - 1) % kTiles], own[(n - 1) % 2], factors[(n - 1) / kTiles % 2],
                     scales[(n - 1) % 2]);
      }
      if (has_next) bytes_of_packets(packets, bytes[1 - n % 2]);
      if constexpr (kAccBuffers == 1) load_factors();  // late, to save registers
      if (kAccBuffers == 1 || n + 1 == kUnrolledPieces) {
        wgmma_wait_group<0>();
        add_limbs(all.acc[tile], own[n % kAccBuffers], factors[n / kTiles % kAccBuffers],
                   scales[n % kAccBuffers]);
      }
    }
  }
}

// Limbs cannot represent infinity or NaN: such accumulators are NaN and must be recomputed.
__device__ inline bool finish_accumulators(WarpgroupAccumulators& all) {
  bool is_invalid = false;
  all.visit([&](int, int, float sum) { is_invalid |= sum != sum; });
  return !is_invalid;
}
