// Layer and RMS norm over rows, forward: y = (x - mean) * inv_variance * scale + bias; x is read
// once.
// The engine prints before it: Spec, ElementSpec, kVector, kChunks, kBlocks, kAhead, kCentred,
// kSharedParameters, kParametersInRegisters, kRolledEpilogue, kParametersInShared,
// kParameterOffset; the sources X, Scale, Bias; epsilon_of, store_x (where x is an output too),
// store_y, store_mean, store_inv_variance.
#include "lib/pointwise.cuh"
#include "lib/row_statistics.cuh"
#include "lib/rows.cuh"

template <bool kInShared, class Tile, class Source, int kOffset> struct ParameterOf {
  typedef RowOperand<Tile, Source, kSharedParameters, kParametersInRegisters> Type;
};
template <class Tile, class Source, int kOffset> struct ParameterOf<true, Tile, Source, kOffset> {
  typedef SharedOperand<Tile, Source, kOffset> Type;
};
template <class Tile>
struct Parameters {
  static const bool kInShared = kParametersInShared && Tile::kChunks > 0;
  static const int kBytes = Tile::kLength * sizeof(R);
  typename ParameterOf<kInShared, Tile, Scale, kParameterOffset>::Type scale;
  typename ParameterOf<kInShared, Tile, Bias, kParameterOffset + kBytes>::Type bias;
  // Called by all threads of the CTA.
  __device__ void fill(const Args& args, const Tile& tile) {
    if constexpr (kInShared) {
      if constexpr (Scale::kPresent) scale.fill(args, tile);
      if constexpr (Bias::kPresent) bias.fill(args, tile);
      __syncthreads();
    }
  }
  __device__ void fetch(const Args& args, const Tile& tile) {
    scale.fetch(args, tile);
    bias.fetch(args, tile);
  }
  __device__ void forget(const Args& args) {
    scale.forget(args);
    bias.forget(args);
  }
};
template <class Tile>
struct Batch {
  Tile tile;
  RowStream<Tile, X> x;
  Parameters<Tile> own;  // where every row has parameters of its own
};

template <class Spec, int kCount, int kChunks>
__device__ inline void norm_forward(const Args& args) {
  typedef RowTile<Spec, kCount, kChunks> Tile;
  constexpr int kUnroll = Spec::kUnroll;
  typedef RowReducer<Spec, 2 * kUnroll> Reducer;
  __shared__ R slots[2 * Reducer::kSlots];
  Reducer reducer(slots);
  const R epsilon = epsilon_of(args);
  Parameters<Tile> shared;
  if constexpr (kSharedParameters) {
    const Tile any = Tile::at_row(args, 0);
    shared.fetch(args, any);
    shared.fill(args, any);
  }

  const RowRange<Tile> range(0, args.rows);

  for_tiles<(kChunks > 0) ? kAhead : 0, Batch<Tile>, Tile>(
      range, args,
      [&](Batch<Tile>& batch, Index row) {
        batch.tile.place(args, row, range.end);
        batch.x.fetch(args, batch.tile);
        if constexpr (!kSharedParameters) batch.own.fetch(args, batch.tile);
      },
      [&](const Tile& tile) {
        decltype(Batch<Tile>::x)::send(args, tile);
      },
      [&](Batch<Tile>& batch) {
        const Tile& tile = batch.tile;
        Parameters<Tile>& parameters = kSharedParameters ? shared : batch.own;
        parameters.forget(args);
        R mean[kUnroll], inv[kUnroll];
        find_statistics<kCentred>(args, tile, batch.x, reducer, epsilon, mean, inv);
#pragma unroll
        for (int u = 0; u < kUnroll; ++u) {
          if (!tile.is_row[u]) continue;
          if (Tile::is_first()) {
            store_mean(args, tile.at[u], mean[u]);
            store_inv_variance(args, tile.at[u], inv[u]);
          }
          Tile::template for_chunks<kRolledEpilogue>([&](int chunk, int column) {
            R v[kCount];
            batch.x.values(args, tile, u, chunk, column, v);
            store_x<kCount>(args, tile.position(u, column).at, v);
#pragma unroll
            for (int l = 0; l < kCount; ++l) v[l] = (kCentred ? v[l] - mean[u] : v[l]) * inv[u];
            if constexpr (Scale::kPresent) {
              R scale[kCount];
              parameters.scale.values(args, tile, u, chunk, column, scale);
#pragma unroll
              for (int l = 0; l < kCount; ++l) v[l] *= scale[l];
            }
            if constexpr (Bias::kPresent) {
              R bias[kCount];
              parameters.bias.values(args, tile, u, chunk, column, bias);
#pragma unroll
              for (int l = 0; l < kCount; ++l) v[l] += bias[l];
            }
            store_y<kCount>(args, tile.position(u, column).at, v);
            // Without this the compiler hoists the shared-memory loads of many chunks, which costs
            // registers.
            if constexpr (Parameters<Tile>::kInShared) __syncwarp();
          });
        }
      });
}

extern "C" __global__ void __launch_bounds__(kThreads, kBlocks)
    row_norm_forward(const __grid_constant__ Args args) {
  norm_forward<Spec, kVector, kChunks>(args);
}

// Scalar variant for unaligned pointers.
extern "C" __global__ void __launch_bounds__(kThreads)
    row_norm_forward_elements(const __grid_constant__ Args args) {
  norm_forward<ElementSpec, 1, 0>(args);
}
