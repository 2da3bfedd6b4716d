// Scales and converts dQ from the scratch of attention_backward.cuh, where the accumulators of a
// thread are groups of four, those of its warpgroup one behind the other. One CTA of two warpgroups
// per block of kBlockM rows.
#include "lib/pointwise.cuh"
#include "lib/quad_rows.cuh"
#include "lib/rows.cuh"

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
  const int row = (row_tile - head * (int)args.tiles_m) * kBlockM + (kBlockM > 64 ? 64 * group : 0) +
                  thread / 32 * 16 + thread % 32 / 4;
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
  }
}
