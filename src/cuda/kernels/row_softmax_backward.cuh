// Softmax over rows, backward: dx = y * (dy - sum(y * dy)); log-softmax: dx = dy - exp(y) *
// sum(dy). y and dy are read once.
// The engine prints before it: Spec, kVector, kChunks, kAhead, kLog; the sources Y, Dy; store_dx.
#include "lib/pointwise.cuh"
#include "lib/row_operand.cuh"
#include "lib/rows.cuh"

template <class Tile>
struct Batch {
  Tile tile;
  RowStream<Tile, Y> y;
  RowStream<Tile, Dy, Y> dy;
};

template <class Spec, int kCount, int kChunks>
__device__ inline void softmax_backward(const Args& args) {
  typedef RowTile<Spec, kCount, kChunks> Tile;
  constexpr int kUnroll = Spec::kUnroll;
  typedef RowReducer<Spec, kUnroll> Reducer;
  __shared__ R slots[2 * Reducer::kSlots];
  Reducer reducer(slots);
  const RowRange<Tile> range(0, args.rows);

  for_tiles<(kChunks > 0) ? kAhead : 0, Batch<Tile>, Tile>(
      range, args,
      [&](Batch<Tile>& batch, Index row) {
        batch.tile.place(args, row, range.end);
        batch.y.fetch(args, batch.tile);
        batch.dy.fetch(args, batch.tile);
      },
      [&](const Tile& tile) {
        decltype(Batch<Tile>::y)::send(args, tile);
        decltype(Batch<Tile>::dy)::send(args, tile);
      },
      [&](Batch<Tile>& batch) {
        const Tile& tile = batch.tile;
        R sum[kUnroll] = {};
#pragma unroll
        for (int u = 0; u < kUnroll; ++u)
          Tile::for_chunks([&](int chunk, int column) {
            R dy[kCount];
            batch.dy.values(args, tile, u, chunk, column, dy);
            if constexpr (!kLog) {
              R y[kCount];
              batch.y.values(args, tile, u, chunk, column, y);
#pragma unroll
              for (int l = 0; l < kCount; ++l) dy[l] *= y[l];
            }
            sum[u] += sum_of(dy);
          });
        batch.y.forget(args);
        batch.dy.forget(args);
        reducer.template reduce<Sum>(sum);
#pragma unroll
        for (int u = 0; u < kUnroll; ++u) {
          if (!tile.is_row[u]) continue;
          Tile::for_chunks([&](int chunk, int column) {
            R y[kCount], dx[kCount];
            batch.y.values(args, tile, u, chunk, column, y);
            batch.dy.values(args, tile, u, chunk, column, dx);
#pragma unroll
            for (int l = 0; l < kCount; ++l)
              dx[l] = kLog ? dx[l] - exp(y[l]) * sum[u] : y[l] * (dx[l] - sum[u]);
            store_dx<kCount>(args, tile.position(u, column).at, dx);
          });
        }
      });
}

extern "C" __global__ void __launch_bounds__(kThreads, kBlocks)
    row_softmax_backward(const __grid_constant__ Args args) {
  softmax_backward<Spec, kVector, kChunks>(args);
}

// Scalar variant for unaligned pointers.
extern "C" __global__ void __launch_bounds__(kThreads)
    row_softmax_backward_elements(const __grid_constant__ Args args) {
  softmax_backward<ElementSpec, 1, 0>(args);
}
