// Mean and inv_variance = 1 / sqrt(variance + epsilon) of rows, the variance about the mean.
#pragma once

#include "lib/ptx_math.cuh"
#include "lib/row_operand.cuh"

__device__ inline float reciprocal_root(float x) { return reciprocal_root_approx(x); }
__device__ inline double reciprocal_root(double x) { return 1.0 / sqrt(x); }

// Adds up the thread's own elements, and their squares about the mean.
template <class Tile, class X, int kUnroll, class R>
__device__ inline void add_elements(const typename Tile::Args& args, const Tile& tile, X& x,
                                    R (&sums)[kUnroll]) {
#pragma unroll
  for (int u = 0; u < kUnroll; ++u)
    Tile::for_chunks([&](int chunk, int column) {
      R v[Tile::kCount];
      x.values(args, tile, u, chunk, column, v);
      sums[u] += sum_of(v);
    });
}
template <bool kCentred, class Tile, class X, int kUnroll, class R>
__device__ inline void add_squares(const typename Tile::Args& args, const Tile& tile, X& x,
                                   const R (&mean)[kUnroll], R (&squares)[kUnroll]) {
#pragma unroll
  for (int u = 0; u < kUnroll; ++u)
    Tile::for_chunks([&](int chunk, int column) {
      R v[Tile::kCount];
      x.values(args, tile, u, chunk, column, v);
#pragma unroll
      for (int l = 0; l < Tile::kCount; ++l) {
        if constexpr (kCentred) v[l] -= mean[u];
        v[l] *= v[l];
      }
      squares[u] += sum_of(v);
    });
}

// All threads of the block call it. Not centred: the mean stays 0.
template <bool kCentred, class Tile, class X, class Reducer, int kUnroll, class R>
__device__ inline void find_statistics(const typename Tile::Args& args, const Tile& tile,
                                       X& x, Reducer& reducer, R epsilon,
                                       R (&mean)[kUnroll], R (&inv_variance)[kUnroll]) {
  const R share = (R)1 / (R)Tile::kLength;
#pragma unroll
  for (int u = 0; u < kUnroll; ++u) mean[u] = inv_variance[u] = (R)0;
  if constexpr (kCentred && Tile::kIsEven) {
    // Of each thread's elements first: one reduction does for both.
    constexpr int kOwn = Tile::kChunks * Tile::kCount;
    add_elements(args, tile, x, mean);
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) mean[u] *= (R)1 / (R)kOwn;
    x.forget(args);
    add_squares<true>(args, tile, x, mean, inv_variance);
    x.forget(args);
    reducer.merge_moments(mean, inv_variance, kOwn);
  } else {
    if constexpr (kCentred) {
      add_elements(args, tile, x, mean);
      x.forget(args);
      reducer.template reduce<Sum>(mean);
#pragma unroll
      for (int u = 0; u < kUnroll; ++u) mean[u] *= share;
    }
    add_squares<kCentred>(args, tile, x, mean, inv_variance);
    x.forget(args);
    reducer.template reduce<Sum>(inv_variance);
  }
#pragma unroll
  for (int u = 0; u < kUnroll; ++u)
    inv_variance[u] = reciprocal_root(inv_variance[u] * share + epsilon);
}
