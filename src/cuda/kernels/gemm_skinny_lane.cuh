// Skinny GEMM: steps of a lane that loads K-major weights, x and scales from global memory straight
// into registers, to recompute accumulators (gemm_skinny_tma.cuh).
#pragma once

#include "lib/ptx_memory.cuh"

static const int kStepBytes = 4 * kPacketBytes;  // of a row, in a step of a warp

// Addresses of the lane's first step. Rows are clamped to the last one; accumulators of clamped
// rows are never stored.
struct Lane {
  const uint8 *weights[kPackets], *x;
  const typename S::Word* scales[kPackets];
  int steps;  // of the warp

  __device__ Lane(const Args& args, const Coord& coord) {
    const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
    const int warp_n = threadIdx.x / 32 % kWarpsN, warp_k = threadIdx.x / 32 / kWarpsN;
    int64 at = args.first_weight, x_at = warp_k * kStepK + t * kOwn, scale_at = 0;
#pragma unroll
    for (int axis = 0; axis < kRank - 2; ++axis) {
      at += coord.batch[axis] * args.batch_stride[axis];
      x_at += coord.batch[axis] * args.x_batch_stride[axis];
      scale_at += coord.batch[axis] * args.scale_batch_stride[axis];
    }
#pragma unroll
    for (int p = 0; p < kPackets; ++p) {
      const Index row = min(coord.first_row + warp_n * kWarpRows + g + 8 * p, (Index)args.n - 1);
      weights[p] = (const uint8*)args.weights + (at + row * args.row_stride) * kBits / 8 +
                   warp_k * kStepBytes + t * kPacketBytes;
      scales[p] = (const typename S::Word*)args.scales + scale_at + row;
    }
    x = (const uint8*)args.x + x_at * 2;
    steps = ((int)args.row_bytes / kStepBytes - warp_k + kWarpsK - 1) / kWarpsK;
  }
};

// Loads weights and scales of step `step` of the warp.
__device__ inline void load_step(const Args& args, const Lane& lane, int step,
                                 Words (&packets)[kPackets], typename S::Word (&scales)[kPackets]) {
  const int at = step * (kWarpsK * kStepBytes);
#pragma unroll
  for (int p = 0; p < kPackets; ++p)
    packets[p].piece = load_once((const Piece*)(lane.weights[p] + at));
  if constexpr (kScaled) {
    const int warp_k = threadIdx.x / 32 / kWarpsN;
    const int group = (step * kWarpsK + warp_k) * kStepK / kScaleBlock;
#pragma unroll
    for (int p = 0; p < kPackets; ++p) scales[p] = lane.scales[p][group * args.scale_stride];
  }
}
__device__ inline void multiply_step(const Args& args, const Coord& coord, const Lane& lane,
                                     int step, const Words (&packets)[kPackets],
                                     const typename S::Word (&scales)[kPackets],
                                     Accumulators& accumulators) {
  const uint8* const x = lane.x + step * (kWarpsK * kStepK * 2);
  const auto unit = [&](int u, int m) {
    return permute_like_weights(
        load_read_only((const uint4*)(x + m * args.x_row_stride * 2 + u * 16)));
  };
  if constexpr (kScaled) {
    Accumulators own;
    own.template add<true>(args, coord, packets, unit, Scales{});
    accumulators.add_scaled(own, OffsetAccumulators(),
                        [&](int p, int) { return (float)widen(S(), scales[p]); });
  } else {
    accumulators.template add<true>(args, coord, packets, unit, Scales{});
  }
}
