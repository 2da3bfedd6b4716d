// Scales and converts dQ from the scratch of attention_backward.cuh, where the accumulators of a
// thread are groups of four, those of its warpgroup one behind the other. One CTA of two warpgroups
// per block of kBlockM rows. Requires sm90/attention_backward_recompute.cuh.
#include "lib/pointwise.cuh"
#include "lib/quad_rows.cuh"
#include "lib/rows.cuh"

// A row of dQ. The compiler must not keep addresses of this rare case in registers before.
__device__ inline void recompute_query(const Args& args, const RowMask& mask, int batch, int head,
                                       int row, int64 at, int begin, int end, float scale) {
  const int lane = opaque((int)threadIdx.x % 32), heads = (int)args.heads_of_key;
  const PoisonedRow poisoned(args.to, args.to_strides, batch, head, row, lane, begin, end);
  const RowOperands own = RowOperands::of_query(args, batch, head, row, lane);
  RowSums sums;
  const int last = row < mask.rows ? mask.end(row) : 0;
#pragma unroll 1
  for (int key = mask.begin(row); key < last; ++key) {
    sums.add(args, own, RowOperands::of_key(args, batch, head / heads, key, lane), at,
             scale * 1.44269504f);
    if (!__any_sync(~0u, poisoned.is_open(sums.first))) break;
  }
  poisoned.replace(sums.first, scale);
}

extern "C" __global__ void __launch_bounds__(256)
    attention_backward_queries(const __grid_constant__ Args args) {
  const int row_tile = (int)blockIdx.x, head = row_tile / (int)args.tiles_m;
  const int batch = head / (int)args.heads, of_batch = head - batch * (int)args.heads;
  const int group = (int)threadIdx.x / 128, thread = (int)threadIdx.x % 128;
  const float4* const from =
      (const float4*)args.d_q + ((int64)row_tile * 2 + group) * (64 * 64 / 4) + thread;
  const float scale = score_scale(args);
  float gradient[32];
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    const float4 four = from[i * 128];
    gradient[4 * i] = four.x * scale;
    gradient[4 * i + 1] = four.y * scale;
    gradient[4 * i + 2] = four.z * scale;
    gradient[4 * i + 3] = four.w * scale;
  }
  const int first_row = (row_tile - head * (int)args.tiles_m) * kBlockM;
  // A warpgroup has 64 rows, or half of the columns.
  const int row =
      first_row + (kBlockM > 64 ? 64 * group : 0) + thread / 32 * 16 + thread % 32 / 4;
  const int column = kBlockM > 64 ? 0 : 64 * group;
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    const int own = row + 8 * r;
    typename Element::Word* const to =
        (typename Element::Word*)args.to +
        (batch * args.to_strides[0] + of_batch * args.to_strides[1] + own * args.to_strides[2] +
         column);
    store_quad_row<Element>(to, own < (int)args.queries ? (int)args.head_dim - column : 0, r,
                            gradient);
    if constexpr (kHasLeftBound || kHasRightBound)
      for_poisoned_rows(own < (int)args.queries ? probe_row(gradient, r) : 0.f, [&](int quad) {
        const int poisoned = __shfl_sync(~0u, own, 4 * quad);
        recompute_query(args, RowMask(args, batch), batch, of_batch, poisoned,
                        (int64)head * (int)args.tiles_m * kBlockM + poisoned, column,
                        min((int)args.head_dim, column + 64), scale);
      });
  }
}
