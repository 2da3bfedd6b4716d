// Sums over the rows of a block for every column: each thread keeps those of its own columns, and
// at the end the groups of threads of a block add theirs up.
#pragma once

#include "lib/row_tile.cuh"

template <class Tile, bool kIsWanted>
struct ColumnPartials {
  typedef typename Tile::R R;
  static const int kCount = Tile::kCount;
  R sums[Tile::kHeldChunks][kCount];
  R* result;  // kLength numbers in memory
  R* home;    // where this group's sums are gathered, and stay while registers do not hold them

  // `gathered`: shared memory of kGroups * kLength numbers, not needed by a single group.
  template <class Spec>
  __device__ void start(Spec, R* to, R* gathered) {
    if constexpr (kIsWanted) {
      result = to;
      const int group = (int)threadIdx.x / Spec::kRowThreads;
      home = Tile::kGroups > 1 ? gathered + group * Spec::kLength : result;
      Tile::for_chunks([&](int chunk, int column) {
#pragma unroll
        for (int l = 0; l < kCount; ++l) at(chunk, column, l) = (R)0;
      });
    }
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
  template <class Spec>
  __device__ void finish(Spec) {
    if constexpr (kIsWanted) {
      if constexpr (Tile::kChunks > 0)
        Tile::for_chunks([&](int chunk, int column) {
#pragma unroll
          for (int l = 0; l < kCount; ++l) home[column + l] = sums[chunk][l];
        });
      if constexpr (Tile::kGroups > 1) {
        __syncthreads();
        const int group = (int)threadIdx.x / Spec::kRowThreads;
        const R* gathered = home - group * Spec::kLength;
        for (int column = threadIdx.x; column < Spec::kLength; column += Spec::kThreads) {
          R total = (R)0;
#pragma unroll 4
          for (int g = 0; g < Tile::kGroups; ++g) total += gathered[g * Spec::kLength + column];
          result[column] = total;
        }
      }
    }
  }

 private:
  __device__ R& at(int chunk, int column, int l) {
    if constexpr (Tile::kChunks > 0)
      return sums[chunk][l];
    else
      return home[column + l];
  }
};
