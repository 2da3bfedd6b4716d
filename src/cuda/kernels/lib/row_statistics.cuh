// Mean and inv_variance = 1 / sqrt(variance + epsilon) of rows, the variance about the mean.
#pragma once

#include "lib/ptx_math.cuh"
#include "lib/row_tile.cuh"

__device__ inline float reciprocal_root(float x) { return reciprocal_root_approx(x); }
__device__ inline double reciprocal_root(double x) { return 1.0 / sqrt(x); }

// All threads of the block call it. Not centred: the mean stays 0.
template <bool kCentred, class Tile, class X, class Reducer, int kUnroll, class R>
__device__ inline void find_statistics(const typename Tile::Args& args, const Tile& tile,
                                       X& x, Reducer& reducer, R epsilon,
                                       R (&mean)[kUnroll], R (&inv_variance)[kUnroll]) {
  constexpr int kCount = Tile::kCount;
  const R share = (R)1 / (R)Tile::kLength;
#pragma unroll
  for (int u = 0; u < kUnroll; ++u) mean[u] = inv_variance[u] = (R)0;
  if constexpr (kCentred) {
#pragma unroll
    for (int u = 0; u < kUnroll; ++u)
      Tile::for_chunks([&](int chunk, int column) {
        R v[kCount];
        x.values(args, tile, u, chunk, column, v);
        mean[u] += sum_of(v);
      });
    x.forget(args);
    reducer.template reduce<Sum>(mean);
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) mean[u] *= share;
  }
#pragma unroll
  for (int u = 0; u < kUnroll; ++u)
    Tile::for_chunks([&](int chunk, int column) {
      R v[kCount];
      x.values(args, tile, u, chunk, column, v);
#pragma unroll
      for (int l = 0; l < kCount; ++l) {
        if constexpr (kCentred) v[l] -= mean[u];
        v[l] *= v[l];
      }
      inv_variance[u] += sum_of(v);
    });
  x.forget(args);
  reducer.template reduce<Sum>(inv_variance);
#pragma unroll
  for (int u = 0; u < kUnroll; ++u)
    inv_variance[u] = reciprocal_root(inv_variance[u] * share + epsilon);
}
