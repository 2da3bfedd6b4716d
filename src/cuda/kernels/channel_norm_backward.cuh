// Channel norm, backward. With g = dy * scale, x_hat = (x - mean) * inv_variance and means over the
// elements of one statistic:
//   dx = inv_variance * (g - mean(g) - x_hat * mean(g * x_hat))
//   dbias = sum(dy), dscale = sum(dy * x_hat), over the elements that share a parameter

// sum(dy) and sum(dy * x_hat) per cell and slice.
template <int kCount>
__device__ inline void gather_gradients(const Args& args) {
  constexpr int kWide = PacketIterator<kCount>::kWide;
  const PacketIterator<kCount> iterator(args, kStatistics == 0);
  Pair<R> sums[kWide];
  R mean[kWide], inv_variance[kWide];
#pragma unroll
  for (int k = 0; k < kWide; ++k) {
    sums[k] = {0, 0};
    mean[k] = inv_variance[k] = 0;
    if (iterator.packets > 0)
      load_statistics(args, iterator.outer, iterator.channel + k, mean[k], inv_variance[k]);
  }
  in_chunks<kChunk<kCount>>(iterator.packets, [&](auto chunk, Index i) {
    constexpr int kPackets = decltype(chunk)::value;
    R x[kPackets][kCount], dy[kPackets][kCount];
#pragma unroll
    for (int p = 0; p < kPackets; ++p) {
      Index at[kRank];
      iterator.locate(args, i + p, at);
      x_of<kCount>(args, at, x[p]);
      read_dy<kCount>(args, at, dy[p]);
    }
#pragma unroll
    for (int k = 0; k < kWide; ++k) {
      Pair<R> chunk_sums = {0, 0};
#pragma unroll
      for (int p = 0; p < kPackets; ++p)
#pragma unroll
        for (int v = 0; v < PacketIterator<kCount>::kPerCell; ++v) {
          chunk_sums.first += dy[p][k + v];
          chunk_sums.second += dy[p][k + v] * (x[p][k + v] - mean[k]);
        }
      merge(sums[k], chunk_sums);
    }
  });
#pragma unroll
  for (int k = 0; k < kWide; ++k) sums[k].second *= inv_variance[k];
  merge_slice<kCount>(iterator, sums);
  if (!iterator.leads) return;
#pragma unroll
  for (int k = 0; k < kWide; ++k) {
    R* to = slice_sums(args, iterator.cell(args) + k, iterator.slice);
    to[0] = sums[k].first;
    to[1] = sums[k].second;
  }
}

// One warp per cell. Where a cell covers a whole parameter or statistic, its sums are final.
extern "C" __global__ void __launch_bounds__(kThreads)
    channel_finish_cells(const __grid_constant__ Args args) {
  const Index cell = ((Index)blockIdx.x * kThreads + threadIdx.x) / kLanes;
  if (cell >= (Index)args.cells) return;
  const int lane = threadIdx.x % kLanes;
  Pair<R> sums = {0, 0};
#pragma unroll 4
  for (Index slice = lane; slice < (Index)args.slices; slice += kLanes) {
    const R* from = slice_sums(args, cell, slice);
    merge(sums, {from[0], from[1]});
  }
  sums = merge_warp(sums);
  if (lane != 0) return;
  const Index outer = divide(cell, args.magic_channels, args.channels);
  const Index channel = cell - outer * (Index)args.channels;
  ((R*)args.cell_gradient)[cell] = sums.first;
  ((R*)args.cell_product)[cell] = sums.second;
  if (args.outers == 1) store_parameter_gradients(args, channel, sums.first, sums.second);
  if (args.width != 1) return;
  const R share = scale_of(args, 0, channel) / (R)args.pixels;
  ((R*)args.mean_gradient)[cell] = sums.first * share;
  ((R*)args.mean_product)[cell] = sums.second * share;
}

// One warp per statistic that spans several cells: reduces over these cells.
extern "C" __global__ void __launch_bounds__(kThreads)
    channel_finish_groups(const __grid_constant__ Args args) {
  const Index box = ((Index)blockIdx.x * kThreads + threadIdx.x) / kLanes;
  if (box >= (Index)args.boxes) return;
  const int lane = threadIdx.x % kLanes;
  const Index width = (Index)args.width, first = box * width;
  const Index outer = divide(box, args.magic_groups, args.groups);
  const Index first_channel = first - outer * (Index)args.channels;
  Pair<R> means = {0, 0};
  for (Index c = lane; c < width; c += kLanes) {
    const R share = scale_of(args, 0, first_channel + c) / ((R)args.pixels * (R)width);
    merge(means, {((const R*)args.cell_gradient)[first + c] * share,
                  ((const R*)args.cell_product)[first + c] * share});
  }
  means = merge_warp(means);
  for (Index c = lane; c < width; c += kLanes) {
    ((R*)args.mean_gradient)[first + c] = means.first;
    ((R*)args.mean_product)[first + c] = means.second;
  }
}

// One warp per parameter that spans several cells: reduces over these cells.
extern "C" __global__ void __launch_bounds__(kThreads)
    channel_finish_parameters(const __grid_constant__ Args args) {
  const Index channel = ((Index)blockIdx.x * kThreads + threadIdx.x) / kLanes;
  if (channel >= (Index)args.channels) return;
  const int lane = threadIdx.x % kLanes;
  Pair<R> sums = {0, 0};
  for (Index outer = lane; outer < (Index)args.outers; outer += kLanes) {
    const Index cell = outer * (Index)args.channels + channel;
    merge(sums, {((const R*)args.cell_gradient)[cell], ((const R*)args.cell_product)[cell]});
  }
  sums = merge_warp(sums);
  if (lane == 0) store_parameter_gradients(args, channel, sums.first, sums.second);
}

// dx as an affine function of dy and x with four coefficients per channel.
template <int kCount>
__device__ inline void input_gradient(const Args& args) {
  constexpr int kWide = PacketIterator<kCount>::kWide;
  const PacketIterator<kCount> iterator(args, kStatistics != 0);
  if (iterator.packets == 0) return;
  R mean[kWide], of_dy[kWide], of_x[kWide], constant[kWide];
#pragma unroll
  for (int k = 0; k < kWide; ++k) {
    R inv_variance;
    load_statistics(args, iterator.outer, iterator.channel + k, mean[k], inv_variance);
    of_dy[k] = inv_variance * scale_of(args, 0, iterator.channel + k);
    of_x[k] = -inv_variance * inv_variance * ((const R*)args.mean_product)[iterator.cell(args) + k];
    constant[k] = -inv_variance * ((const R*)args.mean_gradient)[iterator.cell(args) + k];
  }
  in_chunks<kChunk<kCount>>(iterator.packets, [&](auto chunk, Index i) {
    constexpr int kPackets = decltype(chunk)::value;
    Index at[kPackets][kRank];
    R x[kPackets][kCount], dy[kPackets][kCount];
#pragma unroll
    for (int p = 0; p < kPackets; ++p) {
      iterator.locate(args, i + p, at[p]);
      x_of<kCount>(args, at[p], x[p]);
      dy_of<kCount>(args, at[p], dy[p]);
    }
#pragma unroll
    for (int p = 0; p < kPackets; ++p) {
#pragma unroll
      for (int v = 0; v < kCount; ++v) {
        const int k = kColumns ? v : 0;
        x[p][v] = of_dy[k] * dy[p][v] + (of_x[k] * (x[p][v] - mean[k]) + constant[k]);
      }
      epilogue<kCount>(args, at[p], x[p]);
    }
  });
}

extern "C" __global__ void __launch_bounds__(kThreads, kBlocks)
    channel_gradients(const __grid_constant__ Args args) {
  gather_gradients<kVector>(args);
}
extern "C" __global__ void __launch_bounds__(kThreads)
    channel_gradients_elements(const __grid_constant__ Args args) {
  gather_gradients<1>(args);
}
extern "C" __global__ void __launch_bounds__(kThreads, kBlocks)
    channel_input_gradient(const __grid_constant__ Args args) {
  input_gradient<kVector>(args);
}
extern "C" __global__ void __launch_bounds__(kThreads)
    channel_input_gradient_elements(const __grid_constant__ Args args) {
  input_gradient<1>(args);
}
