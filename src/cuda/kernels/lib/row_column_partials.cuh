// Sums over the rows of a block for every column: each thread keeps those of its own columns, and
// at the end the groups of threads of a block add theirs up.
#pragma once

#include "lib/row_tile.cuh"

// While rows are worked on, the sums are in registers; with kInShared in shared memory, where each
// thread has places of its own (a single group only); where rows do not stay in registers, they are
// where they are gathered.
template <class Spec, class Tile, bool kIsWanted, bool kInShared>
struct ColumnPartials {
  typedef typename Tile::R R;
  static const int kCount = Tile::kCount, kGroups = Tile::kGroups, kLength = Spec::kLength;
  static const bool kIsHeld = Tile::kChunks > 0;
  static const int kRegisterChunks = kIsHeld && !kInShared ? Tile::kChunks : 1;
  R sums[kRegisterChunks][kCount];
  R* result;  // kLength numbers in memory
  R* shared;  // kGroups * kLength numbers; not needed by a single group with sums in registers

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
          for (int l = 0; l < kCount; ++l) gathered()[column + l] = at(chunk, column, l);
        });
      if constexpr (kGroups > 1) {
        __syncthreads();
        for (int column = threadIdx.x; column < kLength; column += Spec::kThreads) {
          R total = (R)0;
#pragma unroll 4
          for (int group = 0; group < kGroups; ++group) total += shared[group * kLength + column];
          result[column] = total;
        }
      }
    }
  }

 private:
  // Of this thread's group.
  __device__ R* gathered() const {
    return kGroups > 1 ? shared + (int)(threadIdx.x / Spec::kRowThreads) * kLength : result;
  }
  __device__ R& at(int chunk, int column, int l) {
    if constexpr (!kIsHeld) {
      return gathered()[column + l];
    } else if constexpr (kInShared) {
      // Neighbouring threads at neighbouring pieces of 16 bytes.
      constexpr int kPiece = kCount < 4 ? kCount : 4;
      const int piece = chunk * (kCount / kPiece) + l / kPiece;
      return shared[(piece * Spec::kThreads + (int)threadIdx.x) * kPiece + l % kPiece];
    } else {
      return sums[chunk][l];
    }
  }
};
