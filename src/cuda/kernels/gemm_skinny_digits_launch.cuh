// Products with few rows by warpgroups: the launch before the one that multiplies, which makes the
// digits of x (gemm_skinny_digits.cuh) once for all blocks.
#pragma once

#include "lib/ptx_launch.cuh"

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
  const int m = number % kRowPairs * 2 + lane / 16, row = m % 8;
  const int block = step * kImageTiles + m / 8;
  if (chunk >= (int)args.rounds) return;

  const int depth = along * kStepDepth + unit * 8;
  uint4 x = make_uint4(0u, 0u, 0u, 0u);
  if (m < kFew && depth < (int)args.depth)
    x = *(const uint4*)((const uint16*)args.x + (int64)m * args.x_row_stride + depth);
  const DigitScale scale(largest_of_row<1, 16>(largest_pair(x)));

  uint8* const image = (uint8*)args.image + (int64)chunk * kImageBytes;
  uint8* const to = image + block * kBlockBytes + slice * kSliceBytes + row * 32 + t * 4;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    uint32 words[kDigits];
    scale.digits(x, half, words);
#pragma unroll
    for (int d = 0; d < kDigits; ++d)
      *(uint32*)(to + d * kPlaneBytes + (half ^ row / 4) * 16) = words[d];
  }
  if (unit == 0) *(float*)(image + kFirstPower + block * kPowerBytes + row * 4) = scale.factor;
}
