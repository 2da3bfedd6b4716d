// Instance and group norm, forward, for contiguous pixels: one CTA per statistic keeps all of its
// elements in registers, so that x is read from global memory once.
#include "lib/divide.cuh"
#include "lib/elements.cuh"
#include "lib/pointwise.cuh"
#include "lib/reduce.cuh"
#include "lib/rows.cuh"

template <int kCount>
__device__ inline void normalise_in_registers(const Args& args) {
  constexpr int kPackets = kHeld * kVector / kCount;  // per thread
  constexpr int kWarps = kThreads / kLanes;
  const Index line_packets = (Index)args.line_pixels / kCount, box = blockIdx.x;
  const int64 magic = kCount == 1 ? args.magic_line_pixels : args.magic_line_packets;
  const Index packets = line_packets * (Index)args.width;
  const Index outer = divide(box, args.magic_groups, args.groups);
  const Index group = box - outer * (Index)args.groups;
  // Coordinates of packet p of this thread; false past the last packet.
  const auto locate = [&](int p, Index (&at)[kRank]) {
    const Index packet = (Index)p * kThreads + threadIdx.x;
    const Index line = divide(packet, magic, line_packets);
    at[0] = outer;
    at[1] = group * (Index)args.width + line;
    at[2] = (packet - line * line_packets) * kCount;
    return packet < packets;
  };
  R x[kPackets][kCount], sum = 0, squares = 0;
  Index at[kRank];
#pragma unroll
  for (int p = 0; p < kPackets; ++p) {
    fill((R)0, x[p]);
    if (locate(p, at)) x_of<kCount>(args, at, x[p]);
#pragma unroll
    for (int v = 0; v < kCount; ++v) sum += x[p][v];
  }
  const R count = (R)args.line_pixels * (R)args.width;
  const R mean = block_reduce<kWarps, Sum>(sum) / count;
#pragma unroll
  for (int p = 0; p < kPackets; ++p) {
    if (!locate(p, at)) continue;
#pragma unroll
    for (int v = 0; v < kCount; ++v) squares += (x[p][v] - mean) * (x[p][v] - mean);
  }
  const R variance = block_reduce<kWarps, Sum>(squares) / count;
  const R inv_variance = (R)1 / sqrt(variance + epsilon_of(args, 0, 0));
  if (threadIdx.x == 0)
    store_statistics(args, outer, group, mean, variance, inv_variance, count);
#pragma unroll
  for (int p = 0; p < kPackets; ++p) {
    if (!locate(p, at)) continue;
    const R factor = inv_variance * scale_of(args, 0, at[1]), bias = bias_of(args, 0, at[1]);
#pragma unroll
    for (int v = 0; v < kCount; ++v) x[p][v] = (x[p][v] - mean) * factor + bias;
    epilogue<kCount>(args, at, x[p]);
  }
}

extern "C" __global__ void __launch_bounds__(kThreads, kBlocks)
    channel_normalise_registers(const __grid_constant__ Args args) {
  normalise_in_registers<kVector>(args);
}
extern "C" __global__ void __launch_bounds__(kThreads, kBlocks)
    channel_normalise_registers_elements(const __grid_constant__ Args args) {
  normalise_in_registers<1>(args);
}
