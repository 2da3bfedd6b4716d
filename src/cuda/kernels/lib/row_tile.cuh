// Tiles of rows: kRowThreads threads share a row, a block has kGroups such groups of threads, and
// every group takes kUnroll rows of a tile at once.
//
// Spec, printed by the engine: R, Index, Args (with extent0..., magic0..., zero); kRank (axes, the
// last one along the row), kLength (elements of a row), kThreads, kRowThreads, kUnroll, kWholeTiles
// (no tile ends early).
//
// A row is read in chunks of kCount elements per thread. kChunks > 0: all of a thread's chunks stay
// in registers; kChunks = 0: rows of any length, read again by every pass.
#pragma once

#include "lib/divide.cuh"
#include "lib/elements.cuh"
#include "lib/ptx_memory.cuh"
#include "lib/ptx_opaque.cuh"
#include "lib/reduce.cuh"

template <class Word> __device__ inline Word from_bits(uint32 bits) { return (Word)bits; }
template <> __device__ inline float from_bits<float>(uint32 bits) { return __uint_as_float(bits); }
template <class Word> __device__ inline Word from_bits(uint64 bits) { return (Word)bits; }
template <> __device__ inline double from_bits<double>(uint64 bits) {
  return __longlong_as_double((int64)bits);
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

  Index at[kUnroll][kRank];
  bool is_row[kUnroll];

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
    const int64* extent = &args.extent0;
    const int64* magic = &args.magic0;
#pragma unroll
    for (int axis = kRank - 2; axis >= 0; --axis) {
      const Index above = axis == 0 ? 0 : divide(row, magic[axis], (Index)extent[axis]);
      to[axis] = row - above * (Index)extent[axis];
      row = above;
    }
    to[kRank - 1] = 0;
  }

  // body(chunk, column) for every chunk of a row that is this thread's.
  template <class Body>
  __device__ static void for_chunks(Body&& body) {
    const int lane = (int)(threadIdx.x % Spec::kRowThreads);
    const int step = Spec::kRowThreads * kCount;
    if constexpr (kChunks > 0) {
#pragma unroll
      for (int chunk = 0; chunk < kChunks; ++chunk) {
        const int column = chunk * step + lane * kCount;
        if ((chunk + 1) * step <= Spec::kLength || column < Spec::kLength) body(chunk, column);
      }
    } else {
#pragma unroll 1
      for (int column = lane * kCount; column < Spec::kLength; column += step) body(0, column);
    }
  }
  // Whether every thread has the same number of elements, all of them held.
  static const bool kIsEven = kChunks > 0 && Spec::kRowThreads * kChunks * kCount == Spec::kLength;
  // Whether this thread speaks for its row.
  __device__ static bool is_first() { return threadIdx.x % Spec::kRowThreads == 0; }

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

// The rows of a block: per_block each, one more for the first with_more of them.
template <class Index>
struct RowRange {
  Index first, end;
  __device__ RowRange(Index rows, Index per_block, Index with_more) {
    const Index block = (Index)blockIdx.x;
    first = block * per_block + (block < with_more ? block : with_more);
    end = first + per_block + (block < with_more ? 1 : 0);
    if (end > rows) end = rows;
  }
};

// Reductions over the threads of a row.
template <class Spec, int kMostValues>
struct RowReducer {
  typedef typename Spec::R R;
  static const int kWarps = Spec::kRowThreads / kLanes;
  static const int kSlots = kWarps > 1 ? Spec::kThreads / kLanes * kMostValues : 1;
  R* slots;  // 2 * kSlots in shared memory, used in turn
  int turn;

  template <class Op, int kValues>
  __device__ void reduce(R (&v)[kValues]) {
    if constexpr (kWarps > 1) {
      block_reduce_in<kWarps, Op>(slots + turn, v);
      turn = kSlots - turn;
    } else {
      warp_reduce<Op, Spec::kRowThreads>(v);
    }
  }

  // Mean and sum of squares about it over the threads of a row from those of `count` elements of
  // each thread: over the lanes of a warp, then over the warps, with one barrier.
  template <int kRows>
  __device__ void merge_moments(R (&mean)[kRows], R (&squares)[kRows], int count) {
    static_assert(2 * kRows <= kMostValues, "");
    constexpr int kWidth = Spec::kRowThreads < kLanes ? Spec::kRowThreads : kLanes;
    merge_lanes<kWidth, kWidth>(mean, squares, (R)count);
    if constexpr (kWarps > 1) {
      R* const here = slots + turn;
      turn = kSlots - turn;
      const int lane = threadIdx.x % kLanes, warp = threadIdx.x / kLanes;
#pragma unroll
      for (int u = 0; u < kRows; ++u)
        if (lane == u) {
          here[(warp * kRows + u) * 2] = mean[u];
          here[(warp * kRows + u) * 2 + 1] = squares[u];
        }
      group_barrier<kWarps * kLanes>(warp / kWarps);
      constexpr int kAcross = lanes_for(kWarps);
      const bool is_warp = lane % kAcross < kWarps;
      const R* of_group = here + (warp / kWarps * kWarps + lane % kAcross) * kRows * 2;
#pragma unroll
      for (int u = 0; u < kRows; ++u) {
        mean[u] = is_warp ? of_group[u * 2] : (R)0;
        squares[u] = is_warp ? of_group[u * 2 + 1] : (R)0;
      }
      merge_lanes<kAcross, kWarps>(mean, squares, (R)(count * kLanes));
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

// What a thread holds of an operand. Source, printed by the engine: Held<kCount>, fetch (loads, and
// maybe work that is fused before the operation), values (R from what is held) and forget. With
// kIsShared the operand is the same for all rows; without kIsHeld every pass reads it again.
template <class Tile, class Source, bool kIsShared = false, bool kMayHold = true>
struct RowOperand {
  typedef typename Tile::R R;
  typedef typename Tile::Args Args;
  static const bool kIsHeld = kMayHold && Tile::kChunks > 0;
  static const int kRows = kIsShared || !kIsHeld ? 1 : Tile::kUnroll;
  typename Source::template Held<Tile::kCount> held[kRows][kIsHeld ? Tile::kChunks : 1];

  __device__ void fetch(const Args& args, const Tile& tile) {
    if constexpr (kIsHeld) {
#pragma unroll
      for (int u = 0; u < kRows; ++u)
        if (kIsShared || tile.is_row[u])
          Tile::for_chunks([&](int chunk, int column) {
            Source::template fetch<Tile::kCount>(args, tile.position(u, column).at,
                                                 held[u][chunk]);
          });
    }
  }
  // Rows that are fetched later, on their way to L2.
  __device__ static void prefetch(const Args& args, const Tile& tile) {
#pragma unroll
    for (int u = 0; u < Tile::kUnroll; ++u)
      if (tile.is_row[u])
        Tile::for_chunks([&](int, int column) {
          Source::template prefetch<Tile::kCount>(args, tile.position(u, column).at);
        });
  }
  // Before another pass over what is held.
  __device__ void forget(const Args& args) {
    if constexpr (kIsHeld) {
#pragma unroll
      for (int u = 0; u < kRows; ++u)
#pragma unroll
        for (int chunk = 0; chunk < Tile::kChunks; ++chunk)
          Source::template forget<Tile::kCount>(held[u][chunk], (uint32)args.zero);
    }
  }
  __device__ void values(const Args& args, const Tile& tile, int u, int chunk, int column,
                         R (&to)[Tile::kCount]) const {
    if constexpr (kIsHeld) {
      Source::template values<Tile::kCount>(args, tile.position(u, column).at,
                                            held[kIsShared ? 0 : u][chunk], to);
    } else {
      typename Source::template Held<Tile::kCount> now;
      const auto position = tile.position(u, column);
      Source::template fetch<Tile::kCount>(args, position.at, now);
      Source::template values<Tile::kCount>(args, position.at, now, to);
    }
  }
};

// The tiles of a range: fetch(batch, first row), then process(batch). The next tile is under way
// meanwhile: in registers, fetched before this one is processed, or to L2 by prefetch(first row).
enum Ahead { kNothingAhead, kRegistersAhead, kL2Ahead };
template <int kAhead, class Batch, class Index, class Fetch, class Prefetch, class Process>
__device__ inline void for_tiles(RowRange<Index> range, int step, Fetch&& fetch,
                                 Prefetch&& prefetch, Process&& process) {
  if constexpr (kAhead == kRegistersAhead) {
    if (range.first >= range.end) return;
    Batch next;
    fetch(next, range.first);
    for (Index row = range.first; row < range.end; row += step) {
      Batch now = next;
      if (row + step < range.end) fetch(next, row + step);
      process(now);
    }
  } else {
    for (Index row = range.first; row < range.end; row += step) {
      Batch now;
      fetch(now, row);
      if constexpr (kAhead == kL2Ahead) {
        if (row + step < range.end) prefetch(row + step);
      }
      process(now);
    }
  }
}

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

// kCount elements as memory holds them, in whole registers.
template <int kCount, class Word>
struct PackedWords {
  typedef Vector<kCount, Word> InMemory;
  static const int kWidth = sizeof(Word);
  static const int kRegisters = kCount * kWidth < 4 ? 1 : kCount * kWidth / 4;
  uint32 registers[kRegisters];

  // Elements that are read once leave no copy in L1.
  template <bool kOnce>
  __device__ void fetch(const Word* from) {
    InMemory memory;
#pragma unroll
    for (int i = 0; i < InMemory::kPieces; ++i) {
      const auto* piece = (const typename InMemory::Piece*)from + i;
      if constexpr (kOnce)
        memory.pieces[i] = StreamPiece<InMemory::kBytes>::load(piece);
      else
        memory.pieces[i] = *piece;
      put(i, memory.pieces[i]);
    }
  }
  __device__ Word word(int l) const {
    if constexpr (kWidth == 8) {
      return from_bits<Word>((uint64)registers[2 * l + 1] << 32 | registers[2 * l]);
    } else if constexpr (kWidth == 4) {
      return from_bits<Word>(registers[l]);
    } else {
      constexpr int kPer = 4 / kWidth;
      return (Word)(registers[l / kPer] >> l % kPer * 8 * kWidth);
    }
  }
  // One thread per line of 128 bytes.
  __device__ static void prefetch(const Word* from) {
    if ((uint64)from % 128 == 0) prefetch_to_l2(from);
  }
  // See lib/ptx_opaque.cuh.
  __device__ void forget_all(uint32 zero) {
#pragma unroll
    for (int i = 0; i < kRegisters; ++i) forget(registers[i], zero);
  }

 private:
  __device__ void put(int i, uint4 v) {
    registers[4 * i] = v.x;
    registers[4 * i + 1] = v.y;
    registers[4 * i + 2] = v.z;
    registers[4 * i + 3] = v.w;
  }
  __device__ void put(int i, uint2 v) {
    registers[2 * i] = v.x;
    registers[2 * i + 1] = v.y;
  }
  __device__ void put(int i, uint32 v) { registers[i] = v; }
};
template <int kCount, class R, class D>
__device__ inline void widen_words(D d, const PackedWords<kCount, typename D::Word>& from,
                                   R (&to)[kCount]) {
#pragma unroll
  for (int l = 0; l < kCount; ++l) to[l] = (R)widen(d, from.word(l));
}
