// Mean and inv_variance = 1 / sqrt(variance + epsilon) of rows; the variance is computed about the
// mean.
#pragma once

#include "lib/ptx_math.cuh"
#include "lib/row_operand.cuh"

__device__ inline float reciprocal_root(float x) { return reciprocal_root_approx(x); }
__device__ inline double reciprocal_root(double x) { return 1.0 / sqrt(x); }

// Sums of the thread's own elements, and of their squared deviations from the mean.
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

// Mean and sum of squared deviations of the thread's own n elements in one pass: with s and q the
// sums of x - pivot and of its square,
//   mean = pivot + s / n      squares = q - s^2 / n
// The pivot is the mean of the first chunk. Therefore squares is at least q / kChunks, and the
// subtraction loses few digits: if d is the distance of the other elements' mean from the pivot, q
// contains d^2 once per element, and squares that much times kCount / n.
template <class Tile, class X, int kUnroll, class R>
__device__ inline void own_moments(const typename Tile::Args& args, const Tile& tile, X& x,
                                   R (&mean)[kUnroll], R (&squares)[kUnroll]) {
  constexpr int kCount = Tile::kCount, kSums = kCount < 4 ? kCount : 4;
  constexpr R kShare = (R)1 / (R)(Tile::kChunks * kCount);
#pragma unroll
  for (int u = 0; u < kUnroll; ++u) {
    R pivot = (R)0, s[kSums] = {}, q[kSums] = {};
    Tile::for_chunks([&](int chunk, int column) {
      R v[kCount];
      x.values(args, tile, u, chunk, column, v);
      if (chunk == 0) {
        pivot = sum_of(v) * ((R)1 / (R)kCount);
        // An infinite pivot becomes 0: the sums are then infinite, as the mean is.
        if (!(fabs(pivot) < (R)infinity())) pivot = (R)0;
      }
#pragma unroll
      for (int l = 0; l < kCount; ++l) {
        const R apart = v[l] - pivot;
        s[l % kSums] += apart;
        q[l % kSums] += apart * apart;
      }
    });
    const R sum = sum_of(s);
    mean[u] = pivot + sum * kShare;
    squares[u] = sum_of(q) - sum * (sum * kShare);
  }
}

// All threads of the CTA call it. Not centred: the mean stays 0.
template <bool kCentred, class Tile, class X, class Reducer, int kUnroll, class R>
__device__ inline void find_statistics(const typename Tile::Args& args, const Tile& tile,
                                       X& x, Reducer& reducer, R epsilon,
                                       R (&mean)[kUnroll], R (&inv_variance)[kUnroll]) {
  const R share = (R)1 / (R)Tile::kLength;
#pragma unroll
  for (int u = 0; u < kUnroll; ++u) mean[u] = inv_variance[u] = (R)0;
  if constexpr (kCentred && Tile::kIsEven) {
    own_moments(args, tile, x, mean, inv_variance);
    x.forget(args);
    reducer.merge_moments(mean, inv_variance, Tile::kChunks * Tile::kCount);
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
