// Loaders from global memory to tiles in shared memory (sm_80 GEMM). Generated code describes
// element [outer][k] of an operand, outer being m or n:
//   Operand::outer(args, work, i), depth(args, work, k)    the two addends of its coordinates
//   Operand::inside(args, work, outer, depth)              false: in padding, reads as zero
//   Operand::kChecked                                      a coordinate that inside() tests, or -1
//   Operand::data(args), Operand::Element                  plain operands: the tensor
//   Operand::load<Type>(args, outer, depth, words)         words of the tile from there on
//   Operand::element<Type>(args, outer, depth, is_there)   one word, or zero
// and how it is loaded:
//   kAsync     kVector contiguous elements at a time by cp.async
//   kVectors   16 bytes of contiguous elements at a time through registers
//   kElements  element by element through registers
//   kDirect    element by element without prefetch: the fallback for unaligned pointers
#pragma once

#include "lib/ptx_cp_async.cuh"
#include "lib/ptx_opaque.cuh"
#include "sm80/operand.cuh"

// Loads packets of contiguous elements, along K or (kMnMajor) along m or n. All packets of a thread
// have the same coordinate on that axis (its column) and lie in several lines of the other axis.
template <class Operand, class Type, int kOuter, int kMode>
struct Loader {
  typedef typename Type::Word Word;
  static const bool kMnMajor = Operand::kMnMajor;
  typedef TileShape<Type, kMnMajor, kOuter> Shape;
  static const int kVector = kMode == kAsync ? Operand::kVector : 16 / (int)sizeof(Word);
  static const int kPerLine = Shape::kRowBytes / (int)sizeof(Word) / kVector;
  static const int kStep = kThreads / kPerLine;  // lines between packets of a thread
  static const int kLines = Shape::kRows / kStep;
  static_assert(kThreads % kPerLine == 0 && Shape::kRows % kStep == 0, "packets do not share out");
  static const int kKept = kMnMajor ? 1 : kLines;
  typedef typename Operand::Coord Coord;
  union Packet {
    Word words[kVector];
    uint4 piece;
  };

  Coord outer[kKept];  // of the column (kMnMajor), or of each line
  uint32 is_there;     // bit i: outer[i] is in bounds
  Packet packets[kMode == kVectors ? kLines : 1];

  __device__ static int column() { return threadIdx.x % kPerLine * kVector; }
  __device__ static int line(int i) { return threadIdx.x / kPerLine + i * kStep; }

  __device__ void start(const Args& args, const WorkTile& work, int first, int end) {
    is_there = 0;
#pragma unroll
    for (int i = 0; i < kKept; ++i) {
      const int at = first + (kMnMajor ? column() : line(i));
      is_there |= (uint32)(at < end) << i;
      outer[i] = Operand::outer(args, work, at < end ? at : 0);
      outer[i].offset = opaque(outer[i].offset);  // keeps it from being recomputed per stage
      if (Operand::kChecked >= 0 && at >= end) outer[i].at[max(Operand::kChecked, 0)] = -(1 << 30);
    }
  }
  __device__ void fetch(const Args& args, const WorkTile& work, int depth, uint8* tile) {
    if constexpr (kMnMajor) {
#pragma unroll
      for (int i = 0; i < kLines; ++i) {
        const int k = depth + line(i);
        const Coord at = Operand::depth(args, work, k);
        const bool is_inside = (Operand::kChecked >= 0 || is_there != 0) && k < work.k_end;
        take(args, work, i, outer[0], at, is_inside ? kVector : 0, tile);
      }
    } else {
      const int k = depth + column();
      const Coord at = Operand::depth(args, work, k);
      const int left = work.k_end - k;
      const int count = kHasKOverride ? max(0, min(kVector, left)) : left > 0 ? kVector : 0;
#pragma unroll
      for (int i = 0; i < kLines; ++i)
        take(args, work, i, outer[i], at,
             Operand::kChecked >= 0 || (is_there >> i & 1) != 0 ? count : 0, tile);
    }
  }
  __device__ void write_smem(uint8* tile) const {
    if constexpr (kMode == kVectors)
#pragma unroll
      for (int i = 0; i < kLines; ++i) *(uint4*)(tile + shared_place(i)) = packets[i].piece;
  }

 private:
  __device__ static int shared_place(int i) {
    const int first = Shape::place(line(0), column() * (int)sizeof(Word));
    if constexpr (kStep % 8 == 0 || (Shape::kByWord && kStep % 4 == 0))
      return first + i * kStep * Shape::kRowBytes;  // rows with the same swizzle
    return Shape::place(line(i), column() * (int)sizeof(Word));
  }
  __device__ void take(const Args& args, const WorkTile& work, int i, const Coord& a,
                       const Coord& b, int count, uint8* tile) {
    const bool is_inside = Operand::inside(args, work, a, b);
    if constexpr (kMode == kAsync) {
      // With `present` = 0 nothing is read, so that the address may be invalid.
      const int kBytes = kVector * (int)sizeof(Word);
      const int present = !is_inside   ? 0
                          : kHasKOverride ? count * (int)sizeof(Word)
                                       : count > 0 ? kBytes : 0;
      cp_async_zfill<kBytes>(tile + shared_place(i),
                                Operand::data(args) + (a.offset + b.offset), present);
    } else {
      if (!is_inside) count = 0;
      packets[i].piece = make_uint4(0, 0, 0, 0);
      if (count == 0) return;
      Operand::template load<Type>(args, a, b, packets[i].words);
      if (count < kVector)
#pragma unroll
        for (int e = 0; e < kVector; ++e)
          if (e >= count) packets[i].words[e] = 0;
    }
  }
};

// Loads element by element into K-major rows, 16 bytes per packet. Consecutive threads take
// consecutive rows where these are contiguous in memory.
template <class Operand, class Type, int kOuter>
struct ElementPackets {
  typedef typename Type::Word Word;
  typedef typename Operand::Coord Coord;
  typedef TileShape<Type, false, kOuter> Shape;
  static const bool kMnMajor = false;
  static const int kVector = 16 / (int)sizeof(Word);
  static const int kPerRow = kTileBytes / 16;
  static const int kPackets = kOuter * kPerRow / kThreads;
  static const bool kRowsFirst = Operand::kOuterIsFast;
  static_assert(kPackets > 0 && kThreads % kPerRow == 0, "packets do not share out");
  union Packet {
    Word words[kVector];
    uint4 piece;
  };

  __device__ static int row(int i) {
    const int packet = threadIdx.x + i * kThreads;
    return kRowsFirst ? packet % kOuter : packet / kPerRow;
  }
  __device__ static int column(int i) {
    const int packet = threadIdx.x + i * kThreads;
    return (kRowsFirst ? packet / kOuter : packet % kPerRow) * kVector;
  }
  __device__ static void store(uint8* tile, int i, const Packet& packet) {
    *(uint4*)(tile + Shape::place(row(i), column(i) * (int)sizeof(Word))) = packet.piece;
  }
  __device__ static Word word(const Args& args, const WorkTile& work, const Coord& outer,
                              const Coord& depth, bool is_there) {
    return Operand::template element<Type>(args, outer, depth,
                                           is_there && Operand::inside(args, work, outer, depth));
  }
};

template <class Operand, class Type, int kOuter>
struct Loader<Operand, Type, kOuter, kElements> : ElementPackets<Operand, Type, kOuter> {
  typedef ElementPackets<Operand, Type, kOuter> Base;
  typedef typename Operand::Coord Coord;
  static const int kPackets = Base::kPackets, kVector = Base::kVector;
  static const int kRows =
      !Base::kRowsFirst ? kPackets : kOuter > kThreads ? kOuter / kThreads : 1;
  Coord outer[kRows];
  uint32 is_there;
  typename Base::Packet packets[kPackets];

  __device__ void start(const Args& args, const WorkTile& work, int first, int end) {
    is_there = 0;
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
      const int at = first + Base::row(i);
      is_there |= (uint32)(at < end) << i;
      outer[i] = Operand::outer(args, work, at < end ? at : 0);
    }
  }
  __device__ void fetch(const Args& args, const WorkTile& work, int depth, uint8*) {
    const auto take = [&](int i, int e, int k, const Coord& at) {
      packets[i].words[e] =
          Base::word(args, work, outer[i % kRows], at,
                     k < work.k_end && (is_there >> i % kRows & 1) != 0);
    };
    if constexpr (Base::kRowsFirst) {
#pragma unroll
      for (int i = 0; i < kPackets; ++i)
#pragma unroll
        for (int e = 0; e < kVector; ++e) {
          const int k = depth + Base::column(i) + e;
          take(i, e, k, Operand::depth(args, work, k));
        }
    } else {
#pragma unroll
      for (int e = 0; e < kVector; ++e) {
        const int k = depth + Base::column(0) + e;
        const Coord at = Operand::depth(args, work, k);
#pragma unroll
        for (int i = 0; i < kPackets; ++i) take(i, e, k, at);
      }
    }
  }
  __device__ void write_smem(uint8* tile) const {
#pragma unroll
    for (int i = 0; i < kPackets; ++i) Base::store(tile, i, packets[i]);
  }
};

template <class Operand, class Type, int kOuter>
struct Loader<Operand, Type, kOuter, kDirect> : ElementPackets<Operand, Type, kOuter> {
  typedef ElementPackets<Operand, Type, kOuter> Base;
  int first, end;

  __device__ void start(const Args&, const WorkTile&, int first_row, int end_row) {
    first = first_row;
    end = end_row;
  }
  __device__ void fetch(const Args& args, const WorkTile& work, int depth, uint8* tile) {
#pragma unroll 1
    for (int i = 0; i < Base::kPackets; ++i) {
      const int row = first + Base::row(i), k = depth + Base::column(i);
      const auto outer = Operand::outer(args, work, row < end ? row : 0);
      typename Base::Packet packet;
#pragma unroll
      for (int e = 0; e < Base::kVector; ++e)
        packet.words[e] = Base::word(args, work, outer, Operand::depth(args, work, k + e),
                                     row < end && k + e < work.k_end);
      Base::store(tile, i, packet);
    }
  }
  __device__ void write_smem(uint8*) const {}
};
