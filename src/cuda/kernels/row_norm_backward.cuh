// Layer and RMS norm over rows, backward: x_hat = (x - mean) * inv_variance, g = dy * scale,
//   dx = inv_variance * (g - mean(g) - x_hat * mean(g * x_hat))      (RMS: without mean(g))
// and per-CTA column sums of dy * x_hat and dy, which row_column_sums reduces. x and dy are read
// once. Grid (x, y) = (piece, parameter set): the rows of a parameter set are contiguous.
// The engine prints before it: Spec, ElementSpec, kVector, kChunks, kBlocks, kAhead, kCentred,
// kParametersInRegisters, kGivenStatistics, kGivenMean, kScaleSums, kBiasSums, kSumsInShared;
// SumSpec; the sources X, Dy, Scale; epsilon_of, load_mean, load_inv_variance, store_dx.
#include "lib/pointwise.cuh"
#include "lib/ptx_grid_dependency.cuh"
#include "lib/ptx_shared.cuh"
#include "lib/row_column_partials.cuh"
#include "lib/row_statistics.cuh"
#include "lib/rows.cuh"

template <class Tile>
struct Batch {
  Tile tile;
  RowStream<Tile, X> x;
  RowStream<Tile, Dy, X> dy;
  R mean[Tile::kUnroll], inv[Tile::kUnroll];
};

// x - mean
__device__ inline R centred(R x, R mean) { return kCentred || kGivenMean ? x - mean : x; }

template <class Spec, int kCount, int kChunks>
__device__ inline void norm_backward(const Args& args) {
  typedef RowTile<Spec, kCount, kChunks> Tile;
  typedef SumOrder<SumSpec, R> Order;
  constexpr int kUnroll = Spec::kUnroll;
  typedef RowReducer<Spec, 2 * kUnroll> Reducer;
  __shared__ R slots[2 * Reducer::kSlots];
  Reducer reducer(slots);
  launch_dependent_grids();
  const R share = (R)1 / (R)Spec::kLength, epsilon = epsilon_of(args);
  const Index first_of_set = (Index)blockIdx.y * (Index)args.rows_per_set;
  const RowRange<Tile> range(first_of_set, args.rows_per_set);
  RowOperand<Tile, Scale, true, kParametersInRegisters> scale;
  const Tile of_set = Tile::at_row(args, first_of_set);
  scale.fetch(args, of_set);
  ColumnPartials<Spec, Tile, Order, kScaleSums, kSumsInShared> scale_sums;
  ColumnPartials<Spec, Tile, Order, kBiasSums, kSumsInShared> bias_sums;
  // Partials of this piece: dscale, then dbias.
  R* partial = (R*)args.partial + ((int64)blockIdx.y * Tile::pieces() + Tile::piece()) *
                                      ((kScaleSums + kBiasSums) * (int64)Order::kCount);
  R* shared = (R*)shared_memory();
  scale_sums.start(partial, shared);
  bias_sums.start(partial + kScaleSums * Order::kCount,
                  shared + kScaleSums * (int)args.sums_stride);

  for_tiles<(kChunks > 0) ? kAhead : 0, Batch<Tile>, Tile>(
      range, args,
      [&](Batch<Tile>& batch, Index row) {
        Tile& tile = batch.tile;
        tile.place(args, row, range.end);
        batch.x.fetch(args, tile);
        batch.dy.fetch(args, tile);
        if constexpr (kGivenStatistics) {
#pragma unroll
          for (int u = 0; u < kUnroll; ++u) {
            batch.mean[u] = load_mean(args, tile.at[u]);
            batch.inv[u] = load_inv_variance(args, tile.at[u]);
          }
        }
      },
      [&](const Tile& tile) {
        decltype(Batch<Tile>::x)::send(args, tile);
        decltype(Batch<Tile>::dy)::send(args, tile);
      },
      [&](Batch<Tile>& batch) {
        const Tile& tile = batch.tile;
        if constexpr (!kGivenStatistics)
          find_statistics<kCentred>(args, tile, batch.x, reducer, epsilon, batch.mean,
                                    batch.inv);
        // Row sums of g * (x - mean), then of g.
        R sums[kCentred ? 2 * kUnroll : kUnroll] = {};
#pragma unroll
        for (int u = 0; u < kUnroll; ++u)
          Tile::for_chunks([&](int chunk, int column) {
            R x[kCount], g[kCount];
            batch.x.values(args, tile, u, chunk, column, x);
            batch.dy.values(args, tile, u, chunk, column, g);
            if constexpr (Scale::kPresent) {
              R factor[kCount];
              scale.values(args, of_set, 0, chunk, column, factor);
#pragma unroll
              for (int l = 0; l < kCount; ++l) g[l] *= factor[l];
            }
            if constexpr (kCentred) sums[kUnroll + u] += sum_of(g);
#pragma unroll
            for (int l = 0; l < kCount; ++l) g[l] *= centred(x[l], batch.mean[u]);
            sums[u] += sum_of(g);
          });
        batch.x.forget(args);
        batch.dy.forget(args);
        scale.forget(args);
        reducer.template reduce<Sum>(sums);
#pragma unroll
        for (int u = 0; u < kUnroll; ++u) {
          if (!tile.is_row[u]) continue;
          // dx = inv g - inv mean(g) - inv^3 (x - mean) mean(g (x - mean))
          const R mean = batch.mean[u], inv = batch.inv[u];
          const R of_x = -inv * inv * inv * (sums[u] * share);
          const R shift = kCentred ? -inv * (sums[kCentred ? kUnroll + u : u] * share) : (R)0;
          Tile::for_chunks([&](int chunk, int column) {
            R x[kCount], dy[kCount], dx[kCount];
            batch.x.values(args, tile, u, chunk, column, x);
            batch.dy.values(args, tile, u, chunk, column, dy);
            bias_sums.add(chunk, column, dy);
#pragma unroll
            for (int l = 0; l < kCount; ++l) {
              x[l] = centred(x[l], mean);
              dy[l] *= inv;
              dx[l] = kCentred ? x[l] * of_x + shift : x[l] * of_x;
            }
            scale_sums.add_products(chunk, column, dy, x);
            if constexpr (Scale::kPresent) {
              R factor[kCount];
              scale.values(args, of_set, 0, chunk, column, factor);
#pragma unroll
              for (int l = 0; l < kCount; ++l) dx[l] += dy[l] * factor[l];
            } else {
#pragma unroll
              for (int l = 0; l < kCount; ++l) dx[l] += dy[l];
            }
            store_dx<kCount>(args, tile.position(u, column).at, dx);
          });
        }
        scale.forget(args);
      });
  scale_sums.finish();
  bias_sums.finish();
}

extern "C" __global__ void __launch_bounds__(kThreads, kBlocks)
    row_norm_backward(const __grid_constant__ Args args) {
  norm_backward<Spec, kVector, kChunks>(args);
}

// Scalar variant for unaligned pointers.
extern "C" __global__ void __launch_bounds__(kThreads)
    row_norm_backward_elements(const __grid_constant__ Args args) {
  norm_backward<ElementSpec, 1, 0>(args);
}
