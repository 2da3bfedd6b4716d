// Tiles of rows: kRowThreads threads share a row, a block has kGroups such groups of threads, and
// every group takes kUnroll rows of a tile at once. With kSlices > 1 the blocks of a cluster share
// the rows: each has kSliceLength columns of them.
//
// Spec, printed by the engine: R, Index, Args (with extent0..., magic0..., zero); kRank (axes, the
// last one along the row), kLength (elements of a row), kThreads, kRowThreads, kUnroll, kSlices,
// kSliceLength, kWholeTiles (no tile ends early); kStages (tiles on their way in a ring in shared
// memory, 0: no ring), kStageBytes, kPipelineOffset (where the ring begins in shared memory).
//
// A row is read in chunks of kCount elements per thread. kChunks > 0: all of a thread's chunks stay
// in registers; kChunks = 0: rows of any length, read again by every pass.
#pragma once

#include "lib/divide.cuh"
#include "lib/elements.cuh"
#include "lib/ptx_barrier.cuh"
#include "lib/ptx_cluster.cuh"
#include "lib/ptx_shared.cuh"
#include "lib/reduce.cuh"

// Which part of the rows a block has.
template <class Spec> __device__ inline int slice() {
  return Spec::kSlices > 1 ? (int)(blockIdx.x % Spec::kSlices) : 0;
}

template <class Spec, int kCountOf, int kChunksOf>
struct RowTile {
  typedef typename Spec::R R;
  typedef typename Spec::Index Index;
  typedef typename Spec::Args Args;
  static const int kCount = kCountOf, kChunks = kChunksOf;
  static const int kUnroll = Spec::kUnroll, kRank = Spec::kRank, kLength = Spec::kLength;
  static const int kGroups = Spec::kThreads / Spec::kRowThreads;
  static const int kRows = kGroups * kUnroll;
  static const int kStages = kChunks > 0 ? Spec::kStages : 0, kThreads = Spec::kThreads;

  Index at[kUnroll][kRank];
  bool is_row[kUnroll];
  uint8* stage;  // of the ring
  // Where a tile lies in the ring.
  __device__ void enter(int number) {
    stage = shared_memory() + Spec::kPipelineOffset + number * Spec::kStageBytes;
  }

  // Blocks along x: pieces of the rows, and slices of each piece.
  __device__ static int piece() { return (int)(blockIdx.x / Spec::kSlices); }
  __device__ static int pieces() { return (int)(gridDim.x / Spec::kSlices); }

  // The rows from `first` on, `end` being the first that is none of this tile's business.
  __device__ void place(const Args& args, Index first, Index end) {
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) {
      const Index row = first + u * kGroups + (int)(threadIdx.x / Spec::kRowThreads);
      is_row[u] = Spec::kWholeTiles || row < end;
      locate(args, is_row[u] ? row : first, at[u]);
    }
  }
  // All threads at the same row.
  __device__ static RowTile at_row(const Args& args, Index row) {
    RowTile tile;
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) {
      tile.is_row[u] = true;
      locate(args, row, tile.at[u]);
    }
    return tile;
  }
  // The first element of a row.
  __device__ static void locate(const Args& args, Index row, Index (&to)[kRank]) {
    locate_row(args, row, to);
    to[kRank - 1] = 0;
  }

  // body(chunk, column) for every chunk of a row that is this thread's. kIsLoop: a loop even where
  // the number of chunks is known, so that long bodies stay in the caches of instructions; then
  // nothing may be in registers by its chunk.
  template <bool kIsLoop = false, class Body>
  __device__ static void for_chunks(Body&& body) {
    const int lane = (int)(threadIdx.x % Spec::kRowThreads);
    const int step = Spec::kRowThreads * kCount, first = slice<Spec>() * Spec::kSliceLength;
    if constexpr (kChunks > 0) {
#pragma unroll(kIsLoop ? 1 : kChunks)
      for (int chunk = 0; chunk < kChunks; ++chunk) {
        const int column = chunk * step + lane * kCount;
        if ((chunk + 1) * step <= Spec::kSliceLength || column < Spec::kSliceLength)
          body(chunk, first + column);
      }
    } else {
#pragma unroll 1
      for (int column = lane * kCount; column < Spec::kSliceLength; column += step)
        body(0, first + column);
    }
  }
  // Whether every thread has the same number of elements, all of them held.
  static const bool kIsEven =
      kChunks > 0 && Spec::kRowThreads * kChunks * kCount == Spec::kSliceLength;
  // Whether this thread speaks for its row.
  __device__ static bool is_first() {
    return threadIdx.x % Spec::kRowThreads == 0 && slice<Spec>() == 0;
  }

  // The position of a chunk.
  struct Position { Index at[kRank]; };
  __device__ Position position(int u, int column) const {
    Position result;
#pragma unroll
    for (int axis = 0; axis < kRank - 1; ++axis) result.at[axis] = at[u][axis];
    result.at[kRank - 1] = column;
    return result;
  }
};

// The rows of a piece: tiles from `first` on, `stride` rows apart, so that at any time all blocks
// together read one part of memory.
template <class Tile>
struct RowRange {
  typedef typename Tile::Index Index;
  Index first, end, stride;
  // Of the `rows` from `begin` on.
  __device__ RowRange(Index begin, Index rows)
      : first(begin + (Index)Tile::piece() * Tile::kRows),
        end(begin + rows),
        stride((Index)Tile::pieces() * Tile::kRows) {}
};

// Reductions over the threads of a row.
template <class Spec, int kMaxValues>
struct RowReducer {
  typedef typename Spec::R R;
  static const int kWarps = Spec::kRowThreads / kLanes, kSlices = Spec::kSlices;
  static const int kParts = kSlices > 1 ? kWarps * kSlices : kWarps;  // warps of a row
  static const int kSlots =
      kParts > 1 ? Spec::kThreads / kLanes * kSlices * kMaxValues : 1;
  R* slots;  // 2 * kSlots in shared memory, used in turn
  Mbarrier* signals;
  int round;

  __device__ explicit RowReducer(R* in_shared) : slots(in_shared), round(0) {
    static_assert(kParts <= kLanes, "");
    if constexpr (kSlices > 1) {
      __shared__ Mbarrier of_turns[2];
      signals = of_turns;
      if (threadIdx.x < 2) {
        init_barrier(signals + threadIdx.x, 1);
        fence_barriers();
      }
      cluster_sync();  // all have started: their memory can be written
    }
  }

  template <class Op, int kValues>
  __device__ void reduce(R (&v)[kValues]) {
    warp_reduce<Op, (Spec::kRowThreads < kLanes ? Spec::kRowThreads : kLanes)>(v);
    if constexpr (kParts > 1) {
      const R* of_row = exchange(v);
      // Every warp adds up the warps' results for itself, which saves a second barrier.
      constexpr int kAcross = lanes_for(kParts);
      const int part = threadIdx.x % kAcross;
#pragma unroll
      for (int i = 0; i < kValues; ++i)
        v[i] = part < kParts ? of_row[part * kValues + i] : Op::template identity<R>();
      warp_reduce<Op, kAcross>(v);
    }
  }

  // What each warp of the row has, in shared memory. The slots are used again after the next but
  // one exchange, before which all have read them.
  template <int kValues>
  __device__ const R* exchange(const R (&v)[kValues]) {
    const int turn = round & 1, parity = round >> 1 & 1;
    ++round;
    R* const here = slots + turn * kSlots;
    const int lane = threadIdx.x % kLanes, warp = threadIdx.x / kLanes;
    if constexpr (kSlices > 1) {
      if (threadIdx.x == 0) arrive_and_expect_tx(signals + turn, kParts * kValues * (int)sizeof(R));
      R* const own = here + (slice<Spec>() * kWarps + warp) * kValues;
      if (lane < kSlices) {
#pragma unroll
        for (int i = 0; i < kValues; ++i) store_async_dsmem(own + i, lane, v[i], signals + turn);
      }
      wait_for(signals + turn, parity);
      return here;
    } else {
#pragma unroll
      for (int i = 0; i < kValues; ++i)
        if (lane == i) here[warp * kValues + i] = v[i];
      group_barrier<kWarps * kLanes>(warp / kWarps);
      return here + warp / kWarps * kWarps * kValues;
    }
  }

  // Mean and sum of squares about it over the threads of a row from those of `count` elements of
  // each thread: over the lanes of a warp, then over the warps, with one barrier.
  template <int kRows>
  __device__ void merge_moments(R (&mean)[kRows], R (&squares)[kRows], int count) {
    static_assert(2 * kRows <= kMaxValues, "");
    constexpr int kWidth = Spec::kRowThreads < kLanes ? Spec::kRowThreads : kLanes;
    merge_lanes<kWidth, kWidth>(mean, squares, (R)count);
    if constexpr (kParts > 1) {
      R own[2 * kRows];
#pragma unroll
      for (int u = 0; u < kRows; ++u) {
        own[2 * u] = mean[u];
        own[2 * u + 1] = squares[u];
      }
      const R* of_row = exchange(own);
      constexpr int kAcross = lanes_for(kParts);
      const int part = threadIdx.x % kAcross;
#pragma unroll
      for (int u = 0; u < kRows; ++u) {
        mean[u] = part < kParts ? of_row[(part * kRows + u) * 2] : (R)0;
        squares[u] = part < kParts ? of_row[(part * kRows + u) * 2 + 1] : (R)0;
      }
      merge_lanes<kAcross, kParts>(mean, squares, (R)(count * kWidth));
    }
  }

 private:
  // Over the first kUsed of kWidth neighbouring lanes with `count` elements each:
  //   mean = sum of means / kUsed      squares = sum of squares + count (own mean - mean)^2
  template <int kWidth, int kUsed, int kRows>
  __device__ static void merge_lanes(R (&mean)[kRows], R (&squares)[kRows], R count) {
    R own[kRows];
#pragma unroll
    for (int u = 0; u < kRows; ++u) own[u] = mean[u];
    warp_reduce<Sum, kWidth>(mean);
#pragma unroll
    for (int u = 0; u < kRows; ++u) {
      mean[u] *= (R)1 / (R)kUsed;
      const R apart = own[u] - mean[u];
      if (kUsed == kWidth || (int)(threadIdx.x % kWidth) < kUsed)
        squares[u] += apart * apart * count;
    }
    warp_reduce<Sum, kWidth>(squares);
  }
};

// The sum of a chunk, in a tree: short chains, small errors.
template <int kCount, class R>
__device__ inline R sum_of(const R (&v)[kCount]) {
  R sums[kCount];
#pragma unroll
  for (int l = 0; l < kCount; ++l) sums[l] = v[l];
#pragma unroll
  for (int half = kCount / 2; half > 0; half /= 2)
#pragma unroll
    for (int l = 0; l < half; ++l) sums[l] += sums[l + half];
  return sums[0];
}
