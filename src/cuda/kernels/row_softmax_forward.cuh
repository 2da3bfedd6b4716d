// Softmax over rows, forward: y = exp(x - max) / sum(exp(x - max)), or its logarithm; stats = max +
// log(sum). x is read once.
// The engine prints before it: Spec, kVector, kChunks, kAhead, kLog; the source X; store_y,
// store_stats.
#include "lib/exponential.cuh"
#include "lib/pointwise.cuh"
#include "lib/row_operand.cuh"
#include "lib/rows.cuh"

template <class Tile>
struct Batch {
  Tile tile;
  RowStream<Tile, X> x;
};

template <class Spec, int kCount, int kChunks>
__device__ inline void softmax_forward(const Args& args) {
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
        batch.x.fetch(args, batch.tile);
      },
      [&](const Tile& tile) {
        decltype(Batch<Tile>::x)::send(args, tile);
      },
      [&](Batch<Tile>& batch) {
        const Tile& tile = batch.tile;
        // exp(x - max) overwrites x in registers, so that it is computed once.
        constexpr bool kKeepsPowers = decltype(batch.x)::kHoldsNumbers && !kLog;
        R largest[kUnroll], sum[kUnroll] = {};
#pragma unroll
        for (int u = 0; u < kUnroll; ++u) {
          largest[u] = Larger::identity<R>();
          Tile::for_chunks([&](int chunk, int column) {
            R v[kCount];
            batch.x.values(args, tile, u, chunk, column, v);
#pragma unroll
            for (int l = 0; l < kCount; ++l) largest[u] = Larger::apply(largest[u], v[l]);
          });
        }
        batch.x.forget(args);
        reducer.template reduce<Larger>(largest);
#pragma unroll
        for (int u = 0; u < kUnroll; ++u)
          Tile::for_chunks([&](int chunk, int column) {
            R v[kCount];
            batch.x.values(args, tile, u, chunk, column, v);
#pragma unroll
            for (int l = 0; l < kCount; ++l) v[l] = exp_shifted(v[l], largest[u]);
            sum[u] += sum_of(v);
            if constexpr (kKeepsPowers) batch.x.put(u, chunk, v);
          });
        batch.x.forget(args);
        reducer.template reduce<Sum>(sum);
#pragma unroll
        for (int u = 0; u < kUnroll; ++u) {
          if (!tile.is_row[u]) continue;
          const R factor = reciprocal(sum[u]);
          const R log_sum = log(sum[u]);
          if (Tile::is_first()) store_stats(args, tile.at[u], largest[u] + log_sum);
          Tile::for_chunks([&](int chunk, int column) {
            R v[kCount];
            batch.x.values(args, tile, u, chunk, column, v);
#pragma unroll
            for (int l = 0; l < kCount; ++l) {
              const R power = kKeepsPowers ? v[l] : exp_shifted(v[l], largest[u]);
              v[l] = kLog ? v[l] - largest[u] - log_sum : power * factor;
            }
            store_y<kCount>(args, tile.position(u, column).at, v);
          });
        }
      });
}

extern "C" __global__ void __launch_bounds__(kThreads, kBlocks)
    row_softmax_forward(const __grid_constant__ Args args) {
  softmax_forward<Spec, kVector, kChunks>(args);
}

// Scalar variant for unaligned pointers.
extern "C" __global__ void __launch_bounds__(kThreads)
    row_softmax_forward_elements(const __grid_constant__ Args args) {
  softmax_forward<ElementSpec, 1, 0>(args);
}
