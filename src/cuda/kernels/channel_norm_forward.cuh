// Channel norm, forward: y = (x - mean) * (inv_variance * scale) + bias.

template <int kCount>
__device__ inline void normalise(const Args& args) {
  constexpr int kWide = PacketIterator<kCount>::kWide;
  const PacketIterator<kCount> iterator(args, kStatistics == 0);
  if (iterator.packets == 0) return;
  R mean[kWide], factor[kWide], bias[kWide];
#pragma unroll
  for (int k = 0; k < kWide; ++k) {
    load_statistics(args, iterator.outer, iterator.channel + k, mean[k], factor[k]);
    factor[k] *= scale_of(args, 0, iterator.channel + k);
    bias[k] = bias_of(args, 0, iterator.channel + k);
  }
  in_chunks<kChunk<kCount>>(iterator.packets, [&](auto chunk, Index i) {
    constexpr int kPackets = decltype(chunk)::value;
    Index at[kPackets][kRank];
    R x[kPackets][kCount];
#pragma unroll
    for (int p = 0; p < kPackets; ++p) {
      iterator.locate(args, i + p, at[p]);
      x_of<kCount>(args, at[p], x[p]);
    }
#pragma unroll
    for (int p = 0; p < kPackets; ++p) {
#pragma unroll
      for (int v = 0; v < kCount; ++v) {
        const int k = kColumns ? v : 0;
        x[p][v] = (x[p][v] - mean[k]) * factor[k] + bias[k];
      }
      epilogue<kCount>(args, at[p], x[p]);
    }
  });
}

extern "C" __global__ void __launch_bounds__(kThreads, kBlocks)
    channel_normalise(const __grid_constant__ Args args) {
  normalise<kVector>(args);
}
extern "C" __global__ void __launch_bounds__(kThreads)
    channel_normalise_elements(const __grid_constant__ Args args) {
  normalise<1>(args);
}
