// Standalone reductions: a cell is one output, the fold of term(x) over its elements.
// Rows: the terms of a cell are contiguous, and kTeam threads stream a slice of them in packets of
// kCount. kColumns: neighbouring cells are contiguous; `lanes` threads along a row own a packet of
// kCount cells each, and kTeam rows of threads share the terms of a slice.
// The fold order over threads and teams is fixed. Where cells are split into several slices
// (kSplit), the partials go to global memory as R[fold][slice][cell] for reduction_sum.cuh.
// The engine prints before it: R, Index, Args, kKept, kReduced (axes), kColumns, kTeam, kUnroll,
// kThreads, kBlocks, kVector, kSplit, kRest; x_of, store<number>; and what reduction_modes.cuh
// needs.
#include "lib/chunks.cuh"
#include "lib/divide.cuh"
#include "lib/elements.cuh"
#include "lib/pointwise.cuh"
#include "lib/ptx_grid_dependency.cuh"
#include "lib/reduce.cuh"
#include "lib/rows.cuh"

static const int kRank = kKept + kReduced;

// The packets of a thread: first, first + kTeam, ..., `packets` of them.
template <int kCount> struct PacketIterator {
  static const int kWide = kColumns ? kCount : 1;  // cells that a packet spans
  int lanes;       // kColumns: threads along a row
  int member;      // index within its team
  Index cell;      // first cell of the thread
  Index slice, first, packets;
  bool works, leads;  // leads: stores the result of the team
  Index at[kRank];    // coordinates of a packet; the kept axes are set by the constructor

  __device__ explicit PacketIterator(const Args& args) {
    Index begin, end;
    if constexpr (kColumns) {
      lanes = (int)(kCount == 1 ? args.single_lanes : args.lanes);
      const int row = threadIdx.x / lanes, lane = threadIdx.x - row * lanes;
      const int of_block = kThreads / (kTeam * lanes), here = row / kTeam;
      member = row - here * kTeam;
      // Tiles vary fastest, so that neighbouring CTAs read neighbouring memory.
      const Index unit = (Index)blockIdx.x * of_block + here;
      const int64 tiles = kCount == 1 ? args.single_tiles : args.tiles;
      const Index above =
          divide(unit, kCount == 1 ? args.magic_single_tiles : args.magic_tiles, tiles);
      const Index outer = divide(above, args.magic_slices, args.slices);
      const Index column = ((unit - above * (Index)tiles) * lanes + lane) * kCount;
      slice = above - outer * (Index)args.slices;
      works = here < of_block && outer < (Index)args.outers && column < (Index)args.width;
      cell = outer * (Index)args.width + column;
      locate_axes<0, kKept - 1>(args, outer, at);
      at[kRank - 1] = column;
      begin = slice * (Index)args.slice_packets;
      end = min(begin + (Index)args.slice_packets, (Index)args.terms);
    } else {
      lanes = 1;
      member = threadIdx.x % kTeam;
      const Index unit = (Index)blockIdx.x * (kThreads / kTeam) + threadIdx.x / kTeam;
      cell = divide(unit, args.magic_slices, args.slices);
      slice = unit - cell * (Index)args.slices;
      works = cell < (Index)args.cells;
      locate_axes<0, kKept>(args, cell, at);
      // The scalar kernel uses the same slice boundaries as the vector kernel.
      const Index step = (Index)args.slice_packets * (kCount == 1 ? kVector : 1);
      begin = slice * step;
      end = kCount == 1 ? (Index)args.terms : (Index)args.packets;
      if (slice + 1 < (Index)args.slices) end = begin + step;
    }
    if (!works) end = begin;
    first = begin + member;
    packets = first < end ? (end - first + kTeam - 1) / kTeam : 0;
    leads = works && member == 0;
  }

  // Sets `at` to packet i.
  __device__ void go_to(const Args& args, Index i) {
    const Index packet = first + i * kTeam;
    if constexpr (kColumns) {
      locate_axes<kKept - 1, kRank - 1>(args, packet, at);
    } else if constexpr (kReduced == 1) {
      at[kRank - 1] = packet * kCount;
    } else {
      const Index per_line = (Index)(kCount == 1 ? args.line : args.line_packets);
      const Index line =
          divide(packet, kCount == 1 ? args.magic_line : args.magic_line_packets, per_line);
      locate_axes<kKept, kRank - 1>(args, line, at);
      at[kRank - 1] = (packet - line * per_line) * kCount;
    }
  }
};

// Folds the packets of this thread into one accumulator per lane of a packet.
template <int kCount>
__device__ inline void fold_packets(const Args& args, PacketIterator<kCount>& iterator,
                                    R (&folded)[kFolds][kCount]) {
  for_each_fold([&](auto fold, auto number) {
    fill(fold.identity(), folded[decltype(number)::value]);
  });
  constexpr int kChunk = kCount == kVector ? kUnroll : 8;
  in_halved_chunks<kChunk>(iterator.packets, [&](auto chunk, Index i) {
    constexpr int kPackets = decltype(chunk)::value;
    R x[kPackets][kCount];
#pragma unroll
    for (int p = 0; p < kPackets; ++p) {
      iterator.go_to(args, i + p);
      x_of<kCount>(args, iterator.at, x[p]);
    }
    for_each_fold([&](auto fold, auto number) {
      R(&to)[kCount] = folded[decltype(number)::value];
#pragma unroll
      for (int p = 0; p < kPackets; ++p)
#pragma unroll
        for (int v = 0; v < kCount; ++v) to[v] = fold.apply(to[v], fold.term(x[p][v]));
    });
  });
  // The remainder behind the last whole packet belongs to the last slice.
  if constexpr (kRest > 0 && kCount > 1) {
    if (!iterator.works || iterator.slice + 1 < (Index)args.slices) return;
    for (int i = iterator.member; i < kRest; i += kTeam) {
      iterator.at[kRank - 1] = (Index)args.packets * kCount + i;
      R x[1];
      x_of<1>(args, iterator.at, x);
      for_each_fold([&](auto fold, auto number) {
        R& to = folded[decltype(number)::value][0];
        to = fold.apply(to, fold.term(x[0]));
      });
    }
  }
}

// Folds the first kNumbers values into values[0] as a tree.
template <int kNumbers, class Fold, int kCount>
__device__ inline void fold_halves(Fold fold, R (&values)[kCount]) {
  if constexpr (kNumbers > 1) {
    constexpr int kHalf = kNumbers / 2;
#pragma unroll
    for (int v = 0; v < kHalf; ++v) values[v] = fold.apply(values[v], values[v + kHalf]);
    fold_halves<kHalf>(fold, values);
  }
}

// Called by all threads of the CTA; the first thread of each team gets the result.
template <class Fold>
__device__ inline R fold_team(Fold fold, R value) {
  value = warp_reduce<Fold, (kTeam < kLanes ? kTeam : kLanes)>(value);
  if constexpr (kTeam > kLanes) {
    __shared__ R slots[kThreads / kLanes];
    const int warp = threadIdx.x / kLanes;
    if (threadIdx.x % kLanes == 0) slots[warp] = value;
    __syncthreads();
    constexpr int kWarps = kTeam / kLanes;
    const int first = warp / kWarps * kWarps;
    value = slots[first];
#pragma unroll
    for (int i = 1; i < kWarps; ++i) value = fold.apply(value, slots[first + i]);
    __syncthreads();
  }
  return value;
}

// The same for columns: row 0 of each team gets the results.
template <class Fold, int kCount>
__device__ inline void fold_rows(Fold fold, int member, int lanes, R (&values)[kCount]) {
  __shared__ R slots[kCount][kThreads];
  const int thread = threadIdx.x;
#pragma unroll
  for (int v = 0; v < kCount; ++v) slots[v][thread] = values[v];
  int rows = kTeam;
#pragma unroll 1
  while (rows > 1) {
    const int half = (rows + 1) / 2;
    __syncthreads();
    if (member + half < rows && thread + half * lanes < kThreads) {
#pragma unroll
      for (int v = 0; v < kCount; ++v) {
        values[v] = fold.apply(values[v], slots[v][thread + half * lanes]);
        slots[v][thread] = values[v];
      }
    }
    rows = half;
  }
  __syncthreads();
}

template <int kCount>
__device__ inline void reduce(const Args& args) {
  PacketIterator<kCount> iterator(args);
  R folded[kFolds][kCount];
  fold_packets(args, iterator, folded);
  if constexpr (kSplit) launch_dependent_grids();
  for_each_fold([&](auto fold, auto number) {
    constexpr int kNumber = decltype(number)::value, kWide = PacketIterator<kCount>::kWide;
    R(&values)[kCount] = folded[kNumber];
    R cells[kWide];
    if constexpr (kColumns) {
      if constexpr (kTeam > 1) fold_rows(fold, iterator.member, iterator.lanes, values);
      copy(values, cells);
    } else {
      fold_halves<kCount>(fold, values);
      cells[0] = fold_team(fold, values[0]);
    }
    if (!iterator.leads) return;
    if constexpr (kSplit) {
      R* partial =
          (R*)args.partial + (kNumber * args.slices + iterator.slice) * args.cells + iterator.cell;
#pragma unroll
      for (int k = 0; k < kWide; ++k) partial[k] = cells[k];
    } else {
#pragma unroll
      for (int k = 0; k < kWide; ++k) cells[k] = fold.result(args, cells[k]);
      Index at[kKept];
      locate_cell(args, iterator.cell, at);
      store<kNumber, kWide>(args, at, cells);
    }
  });
}

extern "C" __global__ void __launch_bounds__(kThreads, kBlocks)
    reduction(const __grid_constant__ Args args) {
  reduce<kVector>(args);
}
extern "C" __global__ void __launch_bounds__(kThreads)
    reduction_elements(const __grid_constant__ Args args) {
  reduce<1>(args);
}
