// Reductions of their own: the result of a cell is the fold of term(x) over its elements.
// Rows: the terms of a cell lie next to each other, and kTeam threads walk a slice of them by
// packets of kCount. kColumns: neighbouring cells lie next to each other; `lanes` threads beside
// each other have a packet of kCount cells each, and kTeam rows of them share the terms of a slice.
// Threads, then teams are folded in an order that does not change. Where cells are cut into several
// slices (kSplit), what each gives is left in memory, R[fold][slice][cell], for reduction_sum.cuh.
// Printed before it: R, Index, Args, kKept, kReduced (axes), kColumns, kTeam, kUnroll, kThreads,
// kBlocks, kVector, kSplit, kRest; x_of, store<number>; before that what reduction_modes.cuh wants.
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
  static const int kWide = kColumns ? kCount : 1;  // cells of a packet
  int lanes;       // columns: threads beside each other
  int member;      // of its team
  Index cell;      // the first of its cells
  Index slice, first, packets;
  bool works, leads;  // leads: writes what the team has folded
  Index at[kRank];    // of a packet; what cells decide is there from the start

  __device__ explicit PacketIterator(const Args& args) {
    Index begin, end;
    if constexpr (kColumns) {
      lanes = (int)(kCount == 1 ? args.single_lanes : args.lanes);
      const int row = threadIdx.x / lanes, lane = threadIdx.x - row * lanes;
      const int of_block = kThreads / (kTeam * lanes), here = row / kTeam;
      member = row - here * kTeam;
      // Tiles vary fastest, so that neighbouring blocks read neighbouring memory.
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
      // Elements one by one are cut where packets are.
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

  // Goes to packet number i.
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

// The elements of this thread, one number for each of a packet's.
template <int kCount>
__device__ inline void fold_packets(const Args& args, PacketIterator<kCount>& iterator,
                                    R (&folded)[kFolds][kCount]) {
  for_each_fold([&](auto fold, auto number) {
    fill(fold.identity(), folded[decltype(number)::value]);
  });
  constexpr int kTogether = kCount == kVector ? kUnroll : 8;
  in_halved_chunks<kTogether>(iterator.packets, [&](auto chunk, Index i) {
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
  // What a single line has behind its last packet belongs to the last slice.
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

// The first kNumbers of the values, into the first one.
template <int kNumbers, class Fold, int kCount>
__device__ inline void fold_halves(Fold fold, R (&values)[kCount]) {
  if constexpr (kNumbers > 1) {
    constexpr int kHalf = kNumbers / 2;
#pragma unroll
    for (int v = 0; v < kHalf; ++v) values[v] = fold.apply(values[v], values[v + kHalf]);
    fold_halves<kHalf>(fold, values);
  }
}

// All threads of the block call it; the first of each team gets the result.
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

// The same for columns: row 0 of a team gets them.
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
