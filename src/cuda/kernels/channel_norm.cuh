// Batch, instance and group norm with a multi-launch reduction. A cell is the part of one statistic
// that one channel contributes: the whole channel (batch norm), or the channel within one image
// (instance and group norm). Each cell is split into slices. The first launch writes one partial
// per slice, the next merges the partials in a fixed order, the last one reads x again in reverse
// order, because the end of x is still in L2.
// kColumns: NHWC, a packet of kCount elements is kCount channels of one pixel. Otherwise NCHW: a
// packet is kCount contiguous pixels of one channel.
#include "lib/chunks.cuh"
#include "lib/divide.cuh"
#include "lib/elements.cuh"
#include "lib/moments.cuh"
#include "lib/pointwise.cuh"
#include "lib/rows.cuh"

// The packets of one thread: first, first + step, ..., `packets` of them, all in the same cells.
template <int kCount> struct PacketIterator {
  static const int kWide = kColumns ? kCount : 1;  // cells that a packet spans
  static const int kPerCell = kColumns ? 1 : kCount;
  bool leads;               // the thread that stores the merged partial of its cells and slice
  int lanes;                // kColumns: threads along the channels
  Index outer, channel;     // first cell of the thread
  Index slice, first, step, packets;

  __device__ PacketIterator(const Args& args, bool from_end) {
    const int thread = threadIdx.x;
    Index begin, end, member;
    if constexpr (kColumns) {
      lanes = kCount == 1 ? (int)args.single_lanes : (int)args.lanes;
      const int row = thread / lanes, lane = thread - row * lanes;
      channel = ((Index)blockIdx.x * lanes + lane) * kCount;
      slice = from_end ? gridDim.y - 1 - blockIdx.y : blockIdx.y;
      outer = blockIdx.z;
      step = kThreads / lanes;
      member = row;
      leads = row == 0 && channel < (Index)args.channels;
      begin = slice * (Index)args.slice_pixels;
      end = min(begin + (Index)args.slice_pixels, (Index)args.pixels);
      if (row >= step || channel >= (Index)args.channels) end = begin;
    } else {
      const int teams = kThreads / kTeam;
      const Index block = from_end ? gridDim.x - 1 - blockIdx.x : blockIdx.x;
      const Index unit = block * teams + thread / kTeam;
      lanes = 1;
      const Index cell = divide(unit, args.magic_slices, args.slices);
      slice = unit - cell * (Index)args.slices;
      outer = divide(cell, args.magic_channels, args.channels);
      channel = cell - outer * (Index)args.channels;
      step = kTeam;
      member = thread % kTeam;
      leads = member == 0 && unit < (Index)args.units;
      begin = slice * (Index)args.slice_pixels / kCount;
      end = min(begin + (Index)args.slice_pixels / kCount, (Index)args.pixels / kCount);
      if (unit >= (Index)args.units) end = begin;
    }
    first = begin + member;
    packets = first < end ? (end - first + step - 1) / step : 0;
    if (from_end) {
      first += (packets - 1) * step;
      step = -step;
    }
  }

  // Coordinates of packet i.
  __device__ void locate(const Args& args, Index i, Index (&at)[kRank]) const {
    const Index packet = first + i * step;
    if constexpr (kColumns) {
      locate_row(args, outer * (Index)args.pixels + packet, at);
      at[kRank - 1] = channel;
    } else {
      const Index per_line = kCount == 1 ? (Index)args.line_pixels : (Index)args.line_packets;
      const int64 magic = kCount == 1 ? args.magic_line_pixels : args.magic_line_packets;
      const Index line = divide(packet, magic, per_line);
      at[0] = outer + line;
      at[1] = channel;
      at[2] = (packet - line * per_line) * kCount;
    }
  }
  // Index into arrays with one value per cell.
  __device__ Index cell(const Args& args) const { return outer * (Index)args.channels + channel; }
};

// Packets in flight per thread. Packets of one element serve unaligned pointers.
template <int kCount> static const int kChunk = kCount == kVector ? kUnroll : 1;

template <int kCount, class T>
__device__ inline void merge_slice(const PacketIterator<kCount>& iterator,
                                   T (&values)[PacketIterator<kCount>::kWide]) {
  if constexpr (kColumns)
    merge_rows<kThreads>(values, iterator.lanes);
  else
    values[0] = merge_team<kThreads, kTeam>(values[0]);
}

// Two values per cell and slice; the slices of a cell are contiguous.
__device__ inline R* slice_sums(const Args& args, Index cell, Index slice) {
  return (R*)args.partial + 2 * (cell * (Index)args.slices + slice);
}

// Mean and inv_variance of a cell: merged by the previous launch, or read from operands.
__device__ inline void load_statistics(const Args& args, Index outer, Index channel, R& mean,
                                       R& inv_variance) {
  if constexpr (kStatistics == 0) {
    const Index cell = outer * (Index)args.channels + channel;
    mean = ((const R*)args.mean)[cell];
    inv_variance = ((const R*)args.inv_variance)[cell];
  } else {
    given_statistics(args, outer, divide(channel, args.magic_width, args.width), mean,
                     inv_variance);
  }
}

// --- statistics

template <int kCount>
__device__ inline void gather_statistics(const Args& args) {
  constexpr int kWide = PacketIterator<kCount>::kWide;
  const PacketIterator<kCount> iterator(args, false);
  Moments<R> moments[kWide];
#pragma unroll
  for (int k = 0; k < kWide; ++k) moments[k] = {0, 0, 0};
  in_chunks<kChunk<kCount>>(iterator.packets, [&](auto chunk, Index i) {
    constexpr int kPackets = decltype(chunk)::value;
    R x[kPackets][kCount];
#pragma unroll
    for (int p = 0; p < kPackets; ++p) {
      Index at[kRank];
      iterator.locate(args, i + p, at);
      x_of<kCount>(args, at, x[p]);
    }
    add_packets(x, moments);
  });
  merge_slice<kCount>(iterator, moments);
  if (!iterator.leads) return;
#pragma unroll
  for (int k = 0; k < kWide; ++k) {
    R* sums = slice_sums(args, iterator.cell(args) + k, iterator.slice);
    sums[0] = moments[k].mean;
    sums[1] = moments[k].squares;
  }
}

extern "C" __global__ void __launch_bounds__(kThreads, kBlocks)
    channel_statistics(const __grid_constant__ Args args) {
  gather_statistics<kVector>(args);
}
extern "C" __global__ void __launch_bounds__(kThreads)
    channel_statistics_elements(const __grid_constant__ Args args) {
  gather_statistics<1>(args);
}

// One warp per statistic merges the slices of its `width` cells.
extern "C" __global__ void __launch_bounds__(kThreads)
    channel_finish_statistics(const __grid_constant__ Args args) {
  const Index box = ((Index)blockIdx.x * kThreads + threadIdx.x) / kLanes;
  if (box >= (Index)args.boxes) return;
  const int lane = threadIdx.x % kLanes;
  const Index width = (Index)args.width, slices = (Index)args.slices, first = box * width;
  const R* sums = slice_sums(args, first, 0);
  // mean = sum(count * mean) / sum(count), then the squared deviations of every slice about it
  // (Chan et al.).
  const auto count_of = [&](Index i) {
    const Index slice = i - divide(i, args.magic_slices, slices) * slices;
    return (R)min((Index)args.slice_pixels, (Index)args.pixels - slice * (Index)args.slice_pixels);
  };
  R total = 0;
#pragma unroll 4
  for (Index i = lane; i < width * slices; i += kLanes) total += count_of(i) * sums[2 * i];
  const R count = (R)args.pixels * (R)width, mean = warp_reduce<Sum>(total) / count;
  R squares = 0;
#pragma unroll 4
  for (Index i = lane; i < width * slices; i += kLanes) {
    const R distance = sums[2 * i] - mean;
    squares += sums[2 * i + 1] + count_of(i) * distance * distance;
  }
  const R variance = warp_reduce<Sum>(squares) / count;
  const R inv_variance = (R)1 / sqrt(variance + epsilon_of(args, 0, 0));
  for (Index channel = lane; channel < width; channel += kLanes) {
    ((R*)args.mean)[first + channel] = mean;
    ((R*)args.inv_variance)[first + channel] = inv_variance;
  }
  if (lane != 0) return;
  const Index outer = divide(box, args.magic_groups, args.groups);
  store_statistics(args, outer, box - outer * (Index)args.groups, mean, variance, inv_variance,
                  count);
}
