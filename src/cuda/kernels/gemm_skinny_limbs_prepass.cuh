// Skinny GEMM on warpgroups: pre-pass launch that decomposes x into int8 limbs
// (gemm_skinny_limbs.cuh) once for all CTAs.
#pragma once

#include "lib/ptx_grid_dependency.cuh"

// A warp decomposes two rows of a step, a lane 8 elements along K of one row: those of word `slice`
// of the packets of lanes t. The low nibbles of that word are k = 0, 2, 4, 6; they form the first
// 16 bytes of a slice, 4 of each lane t. The high nibbles form the other 16.
extern "C" __global__ void __launch_bounds__(kRepackWarps * 32)
    gemm_skinny_repack(const __grid_constant__ Args args) {
  launch_dependent_grids();
  wait_on_dependent_grids();
  constexpr int kRowPairs = kColumns / 2;
  const int lane = threadIdx.x % 32, unit = lane % 16, t = unit / kSlices, slice = unit % kSlices;
  const int number = blockIdx.x * kRepackWarps + threadIdx.x / 32, along = number / kRowPairs;
  const int chunk = along / kSteps, step = along % kSteps;
  const int m = number % kRowPairs * 2 + lane / 16, row = m % 8;
  const int block = step * kPackedXTiles + m / 8;
  if (chunk >= (int)args.rounds) return;

  const int k = along * kStepK + unit * 8;
  uint4 x = make_uint4(0u, 0u, 0u, 0u);
  if (m < kM && k < (int)args.k)
    x = *(const uint4*)((const uint16*)args.x + (int64)m * args.x_row_stride + k);
  const LimbScale scale(largest_of_row<1, 16>(largest_pair(x)));

  uint8* const packed_x = (uint8*)args.packed_x + (int64)chunk * kPackedXBytes;
  uint8* const to = packed_x + block * kBlockBytes + slice * kSliceBytes + row * 32 + t * 4;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    uint32 words[kLimbs];
    scale.limbs(x, half, words);
#pragma unroll
    for (int d = 0; d < kLimbs; ++d)
      *(uint32*)(to + d * kPlaneBytes + (half ^ row / 4) * 16) = words[d];
  }
  if (unit == 0) *(float*)(packed_x + kFirstXScale + block * kXScaleBytes + row * 4) = scale.factor;
}
