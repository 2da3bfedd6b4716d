// Sums over the rows of a block for every column: each thread keeps those of its own columns, and
// at the end the groups of threads of a block add theirs up.
#pragma once

#include "lib/row_tile.cuh"

// Sums leave a block in the order in which neighbouring threads have neighbouring pieces of 16
// bytes. SumSpec, printed by the engine: kVector, kThreads, kChunks, kSlices as rows are shared out
// (vectors of one element: the order of the columns), kLength of the row.
template <class SumSpec, class R>
struct SumOrder {
  static const int kVector = SumSpec::kVector, kThreads = SumSpec::kThreads;
  static const int kPiece = kVector < 16 / (int)sizeof(R) ? kVector : 16 / (int)sizeof(R);
  static const int kOfChunk = kThreads * kVector, kOfSlice = SumSpec::kChunks * kOfChunk;
  static const int kSliceLength = SumSpec::kLength / SumSpec::kSlices;
  static const int kCount = kOfSlice * SumSpec::kSlices;  // of all sums, with some that are none

  __device__ static int position(int slice, int chunk, int thread, int l) {
    return slice * kOfSlice + chunk * kOfChunk + (l / kPiece * kThreads + thread) * kPiece +
           l % kPiece;
  }
  __device__ static int position(int column) {
    const int within = column % kSliceLength, in_chunk = within % kOfChunk;
    return position(column / kSliceLength, within / kOfChunk, in_chunk / kVector,
                    in_chunk % kVector);
  }
  // At least kLength where there is none.
  __device__ static int column(int position) {
    const int slice = position / kOfSlice, chunk = position % kOfSlice / kOfChunk;
    const int piece = position % kOfChunk / kPiece;
    const int within = chunk * kOfChunk + piece % kThreads * kVector + piece / kThreads * kPiece +
                       position % kPiece;
    return within < kSliceLength ? slice * kSliceLength + within : SumSpec::kLength;
  }
};

// While rows are worked on, the sums are in registers; with kInShared in shared memory, where each
// thread has places of its own (a single group only); where rows do not stay in registers, they are
// where they are gathered.
template <class Spec, class Tile, class Order, bool kIsWanted, bool kInShared>
struct ColumnPartials {
  typedef typename Tile::R R;
  static const int kCount = Tile::kCount, kGroups = Tile::kGroups;
  static const bool kIsHeld = Tile::kChunks > 0;
  static const int kRegisterChunks = kIsHeld && !kInShared ? Tile::kChunks : 1;
  R sums[kRegisterChunks][kCount];
  R* result;  // Order::kCount numbers in memory
  R* shared;  // kGroups times as many; not needed by a single group with sums in registers

  __device__ void start(R* to, R* in_shared) {
    result = to;
    shared = in_shared;
    if constexpr (kIsWanted)
      Tile::for_chunks([&](int chunk, int column) {
#pragma unroll
        for (int l = 0; l < kCount; ++l) at(chunk, column, l) = (R)0;
      });
  }
  __device__ void add(int chunk, int column, const R (&v)[kCount]) {
    if constexpr (kIsWanted) {
#pragma unroll
      for (int l = 0; l < kCount; ++l) at(chunk, column, l) += v[l];
    }
  }
  __device__ void add_products(int chunk, int column, const R (&a)[kCount], const R (&b)[kCount]) {
    if constexpr (kIsWanted) {
#pragma unroll
      for (int l = 0; l < kCount; ++l) at(chunk, column, l) += a[l] * b[l];
    }
  }
  // All threads of the block call it.
  __device__ void finish() {
    if constexpr (kIsWanted) {
      if constexpr (kIsHeld)
        Tile::for_chunks([&](int chunk, int column) {
#pragma unroll
          for (int l = 0; l < kCount; l += Order::kPiece) {
            Vector<Order::kPiece, R> piece;
#pragma unroll
            for (int i = 0; i < Order::kPiece; ++i) piece.words[i] = at(chunk, column, l + i);
            auto* to = (typename Vector<Order::kPiece, R>::Piece*)(gathered() + own(chunk, l));
            *to = piece.pieces[0];
          }
        });
      if constexpr (kGroups > 1) {
        __syncthreads();
        for (int i = threadIdx.x; i < Order::kCount; i += Spec::kThreads) {
          R total = (R)0;
#pragma unroll 4
          for (int group = 0; group < kGroups; ++group) total += shared[group * Order::kCount + i];
          result[i] = total;
        }
      }
    }
  }

 private:
  // Of this thread's group.
  __device__ R* gathered() const {
    return kGroups > 1 ? shared + (int)(threadIdx.x / Spec::kRowThreads) * Order::kCount : result;
  }
  __device__ static int own(int chunk, int l) {
    return Order::position(slice<Spec>(), chunk, (int)(threadIdx.x % Spec::kRowThreads), l);
  }
  __device__ R& at(int chunk, int column, int l) {
    if constexpr (!kIsHeld)
      return gathered()[Order::position(column + l)];
    else if constexpr (kInShared)
      return shared[Order::position(0, chunk, (int)threadIdx.x, l)];
    else
      return sums[chunk][l];
  }
};
