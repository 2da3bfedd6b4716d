// Operands of row kernels: in registers, in a ring in shared memory, or read again by every pass;
// and the walk over the tiles of a block while later ones are on their way.
#pragma once

#include "lib/ptx_cp_async.cuh"
#include "lib/ptx_memory.cuh"
#include "lib/ptx_opaque.cuh"
#include "lib/row_tile.cuh"
#include "lib/rows.cuh"

template <class Word> __device__ inline Word from_bits(uint32 bits) { return (Word)bits; }
template <> __device__ inline float from_bits<float>(uint32 bits) { return __uint_as_float(bits); }
template <class Word> __device__ inline Word from_bits(uint64 bits) { return (Word)bits; }
template <> __device__ inline double from_bits<double>(uint64 bits) {
  return __longlong_as_double((int64)bits);
}

// kCount elements as memory holds them, in whole registers.
template <int kCount, class Word>
struct PackedWords {
  typedef Vector<kCount, Word> InMemory;
  static const int kWidth = sizeof(Word);
  static const int kRegisters = kCount * kWidth < 4 ? 1 : kCount * kWidth / 4;
  uint32 registers[kRegisters];
  uint32 hidden = 0;  // see forget_all

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
  // In shared memory: the pieces of kThreads threads, neighbours next to each other.
  static const int kBytes = kCount * kWidth;
  template <int kThreads>
  __device__ static typename InMemory::Piece* slot(uint8* slots, int i) {
    return (typename InMemory::Piece*)slots + i * kThreads + threadIdx.x;
  }
  template <int kThreads>
  __device__ static void to_pipeline(const Word* from, uint8* slots) {
    if constexpr (InMemory::kBytes >= 4) {
#pragma unroll
      for (int i = 0; i < InMemory::kPieces; ++i)
        cp_async<InMemory::kBytes>(slot<kThreads>(slots, i),
                                     (const typename InMemory::Piece*)from + i);
    }
  }
  template <int kThreads>
  __device__ void from_pipeline(uint8* slots) {
#pragma unroll
    for (int i = 0; i < InMemory::kPieces; ++i) put(i, *slot<kThreads>(slots, i));
  }
  // One thread per line of 128 bytes.
  __device__ static void prefetch(const Word* from) {
    if ((uint64)from % 128 == 0) prefetch_to_l2(from);
  }
  // See lib/ptx_opaque.cuh. kByHiding: the zero is added to what elements are shifted and masked by
  // when they are taken out, which costs nothing.
  template <bool kByHiding>
  __device__ void forget_all(uint32 zero) {
    if constexpr (kByHiding) {
      hidden += zero;
    } else {
#pragma unroll
      for (int i = 0; i < kRegisters; ++i) forget(registers[i], zero);
    }
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
  if constexpr (WidensPairs<R, D>::value && kCount % 2 == 0) {
#pragma unroll
    for (int l = 0; l < kCount; l += 2) {
      to[l] = __uint_as_float(from.registers[l / 2] << (16 + from.hidden));
      to[l + 1] = __uint_as_float(from.registers[l / 2] & (0xffff0000u + from.hidden));
    }
  } else {
#pragma unroll
    for (int l = 0; l < kCount; ++l) to[l] = (R)widen(d, from.word(l));
  }
}

// What a thread holds of an operand. Source, printed by the engine: Held<kCount>, fetch (loads, and
// maybe work that is fused before the operation), values (R from what is held) and forget; where
// kIsStaged, what is held is what memory has, of kBytes<kCount> bytes, and there are to_pipeline and
// from_pipeline. With kIsShared the operand is the same for all rows; without kIsHeld every pass reads
// it again.
template <class Tile, class Source, bool kIsShared = false, bool kMayHold = true>
struct RowOperand {
  typedef typename Tile::R R;
  typedef typename Tile::Args Args;
  static const bool kIsHeld = kMayHold && Tile::kChunks > 0;
  static const int kRows = kIsShared || !kIsHeld ? 1 : Tile::kUnroll;
  typename Source::template Held<Tile::kCount> held[kRows][kIsHeld ? Tile::kChunks : 1];

  // Whether these are numbers, in whose place others can be put.
  static const bool kHoldsNumbers = kIsHeld && !Source::kIsStaged;
  __device__ void put(int u, int chunk, const R (&from)[Tile::kCount]) {
    copy(from, held[u][chunk].values);
  }

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
  __device__ static void send(const Args& args, const Tile& tile) {
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

// An operand that all rows share, as numbers in shared memory from byte kOffset on, which the
// threads of the block fill together. Parts of 16 bytes lie next to those of the neighbouring
// threads: no two of them are in the same bank.
template <class Tile, class Source, int kOffset>
struct SharedOperand {
  typedef typename Tile::R R;
  typedef typename Tile::Args Args;
  static const int kCount = Tile::kCount;
  static const int kPer = kCount * sizeof(R) < 16 ? kCount : 16 / sizeof(R), kParts = kCount / kPer;
  typedef Vector<kPer, R> Part;
  __device__ static typename Part::Piece* place(int part, int column) {
    return (typename Part::Piece*)(shared_memory() + kOffset) +
           part * (Tile::kLength / kCount) + column / kCount;
  }

  __device__ void fetch(const Args&, const Tile&) {}
  __device__ void fill(const Args& args, const Tile& tile) {
#pragma unroll 1
    for (int column = threadIdx.x * kCount; column < Tile::kLength;
         column += Tile::kThreads * kCount) {
      typename Source::template Held<kCount> now;
      const auto position = tile.position(0, column);
      R v[kCount];
      Source::template fetch<kCount>(args, position.at, now);
      Source::template values<kCount>(args, position.at, now, v);
#pragma unroll
      for (int part = 0; part < kParts; ++part) {
        Part numbers;
#pragma unroll
        for (int i = 0; i < kPer; ++i) numbers.words[i] = v[part * kPer + i];
        *place(part, column) = numbers.pieces[0];
      }
    }
  }
  __device__ void forget(const Args&) {}
  __device__ void values(const Args&, const Tile&, int, int, int column, R (&to)[kCount]) const {
#pragma unroll
    for (int part = 0; part < kParts; ++part) {
      Part numbers;
      numbers.pieces[0] = *place(part, column);
#pragma unroll
      for (int i = 0; i < kPer; ++i) to[part * kPer + i] = numbers.words[i];
    }
  }
};

// An operand that lies in the ring, after what all threads have of `Before`. A thread copies its
// chunks to places of its own and later reads just these: it waits for its copies only.
template <class Tile, class Source, class Before>
struct PipelineOperand {
  typedef typename Tile::R R;
  typedef typename Tile::Args Args;
  static const int kBytes = Source::template kBytes<Tile::kCount> * Tile::kThreads;  // of a chunk
  static const int kOffset = Before::template kBytes<Tile::kCount> * Tile::kThreads *
                             (Tile::kUnroll * Tile::kChunks);
  __device__ static uint8* slots(const Tile& tile, int u, int chunk) {
    return tile.stage + kOffset + (u * Tile::kChunks + chunk) * kBytes;
  }

  static const bool kHoldsNumbers = false;
  __device__ void fetch(const Args&, const Tile&) {}
  __device__ static void send(const Args& args, const Tile& tile) {
#pragma unroll
    for (int u = 0; u < Tile::kUnroll; ++u)
      if (tile.is_row[u])
        Tile::for_chunks([&](int chunk, int column) {
          Source::template to_pipeline<Tile::kCount, Tile::kThreads>(
              args, tile.position(u, column).at, slots(tile, u, chunk));
        });
  }
  __device__ void forget(const Args&) { forget_memory(); }
  __device__ void values(const Args& args, const Tile& tile, int u, int chunk, int column,
                         R (&to)[Tile::kCount]) const {
    typename Source::template Held<Tile::kCount> now;
    Source::template from_pipeline<Tile::kCount, Tile::kThreads>(slots(tile, u, chunk), now);
    Source::template values<Tile::kCount>(args, tile.position(u, column).at, now, to);
  }
};
struct Nothing {
  template <int kCount> static constexpr int kBytes = 0;
};

// An operand of which every row has its own part: in the ring where there is one.
template <bool kInPipeline, class Tile, class Source, class Before> struct RowStreamOf {
  typedef RowOperand<Tile, Source> Type;
};
template <class Tile, class Source, class Before> struct RowStreamOf<true, Tile, Source, Before> {
  typedef PipelineOperand<Tile, Source, Before> Type;
};
template <class Tile, class Source, class Before = Nothing>
using RowStream =
    typename RowStreamOf<(Tile::kStages > 0 && Source::kIsStaged), Tile, Source, Before>::Type;

// The tiles of a range: fetch(batch, first row), then process(batch). Later tiles are under way
// meanwhile: in registers, fetched before this one is processed; to L2, or to the ring's next free
// stage, by send(tile), where the tile is placed by place(tile, first row).
enum Ahead { kNothingAhead, kRegistersAhead, kL2Ahead, kPipelineAhead };
template <int kAhead, class Batch, class Tile, class Fetch, class Send, class Process>
__device__ inline void for_tiles(const RowRange<Tile>& range, const typename Tile::Args& args,
                                 Fetch&& fetch, Send&& send, Process&& process) {
  typedef typename Tile::Index Index;
  if (range.first >= range.end) return;
  const auto send_row = [&](Index row, int stage) {
    if (row >= range.end) return;
    Tile tile;
    tile.place(args, row, range.end);
    tile.enter(stage);
    send(tile);
  };
  Batch next;
  if constexpr (kAhead == kPipelineAhead) {
#pragma unroll 1
    for (int s = 0; s < Tile::kStages; ++s) {
      send_row(range.first + s * range.stride, s);
      cp_async_commit_group();
    }
  }
  constexpr bool kFetchesEarly = kAhead == kRegistersAhead || kAhead == kPipelineAhead;
  if constexpr (kFetchesEarly) fetch(next, range.first);
  int stage = 0;
  for (Index row = range.first; row < range.end; row += range.stride) {
    Batch now;
    if constexpr (kFetchesEarly) {
      now = next;
      if (row + range.stride < range.end) fetch(next, row + range.stride);
    } else {
      fetch(now, row);
    }
    if constexpr (kAhead == kL2Ahead) send_row(row + range.stride, 0);
    if constexpr (kAhead == kPipelineAhead) {
      now.tile.enter(stage);
      cp_async_wait_group<Tile::kStages - 1>();
    }
    process(now);
    if constexpr (kAhead == kPipelineAhead) {
      send_row(row + Tile::kStages * range.stride, stage);
      cp_async_commit_group();
      stage = stage + 1 < Tile::kStages ? stage + 1 : 0;
    }
  }
}
