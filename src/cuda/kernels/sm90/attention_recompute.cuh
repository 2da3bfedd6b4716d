// Values of NaN and infinity in V must not reach the rows that do not see their key, but the tensor
// cores multiply them with a weight of 0, which is NaN. Keys past the length are cleared
// (clear_values); those hidden by the bounds show as NaN in O. A warp computes such rows again from
// memory, without the hidden keys. Requires sm90/attention_softmax.cuh, and args.q, args.k, args.v
// with strides [batch, head, row].
#include "lib/ptx_opaque.cuh"

// One row by a warp. Only results of NaN are replaced; it ends where they are certain to be NaN.
// `shift` and `factor` are those of the softmax, `exponent` and `scale` too.
__device__ inline void recompute_row(const Args& args, const AttentionTile& tile,
                                     const RowMask& mask, int row, float exponent, float scale,
                                     float shift, float factor) {
  const int kQueries = kHeadDim / 32, kValues = kValueDim / 32;
  // The compiler must not keep addresses of this rare case in registers during the mainloop.
  const int lane = opaque((int)threadIdx.x % 32);
  typename Element::Word* const o = (typename Element::Word*)row_of(
      args.o, args.o_strides, tile.batch, tile.head, row);
  float query[kQueries], before[kValues], sums[kValues];
  load_strip(row_of(args.q, args.q_strides, tile.batch, tile.head, row), lane,
             (int)args.head_dim, query);
  load_strip(o, lane, (int)args.value_dim, before);
#pragma unroll
  for (int i = 0; i < kValues; ++i) sums[i] = 0;
#pragma unroll 1
  for (int j = mask.begin(row); j < mask.end(row); ++j) {
    float key[kQueries], value[kValues], score = 0;
    load_strip(row_of(args.k, args.k_strides, tile.batch, tile.head / (int)args.heads_of_key, j),
               lane, (int)args.head_dim, key);
    load_strip(row_of(args.v, args.v_strides, tile.batch, tile.head / (int)args.heads_of_value, j),
               lane, (int)args.value_dim, value);
#pragma unroll
    for (int i = 0; i < kQueries; ++i) score += query[i] * key[i];
    for (int distance = 16; distance > 0; distance /= 2)
      score += __shfl_xor_sync(~0u, score, distance);
    const float weight = exp2_approx(fmaf(score * scale, exponent, -shift));
    bool is_open = false;
#pragma unroll
    for (int i = 0; i < kValues; ++i) {
      sums[i] += weight * value[i];
      is_open = is_open || (before[i] != before[i] && sums[i] == sums[i]);
    }
    if (!__any_sync(~0u, is_open)) break;
  }
#pragma unroll
  for (int i = 0; i < kValues; ++i)
    if (before[i] != before[i]) o[32 * i + lane] = narrow(Element(), sums[i] * factor);
}

// Behind store_tile.
__device__ inline void recompute_nonfinite(const Args& args, const AttentionTile& tile,
                                           const RowMask& mask, int row, float scale,
                                           const OnlineSoftmax& softmax,
                                           const ValueMma::Fragment& output) {
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    float probe = 0;  // NaN where an element is NaN or infinity
#pragma unroll
    for (int i = 0; i < kValueDim / 4; ++i)
      probe = fmaf(output[i / 2 * 4 + 2 * r + i % 2], 0, probe);
    // With a sum of NaN the whole row is NaN.
    const bool is_poisoned = probe != probe && softmax.sum[r] == softmax.sum[r] &&
                             row + 8 * r < (int)args.queries;
    const uint32 lanes = __ballot_sync(~0u, is_poisoned);
    if (lanes == 0) continue;
    __syncwarp();  // the stores of store_tile
#pragma unroll 1
    for (int quad = 0; quad < 8; ++quad) {
      const float shift = __shfl_sync(~0u, softmax.shift(r), 4 * quad);
      const float sum = __shfl_sync(~0u, softmax.sum[r], 4 * quad);
      const int own = __shfl_sync(~0u, row, 4 * quad) + 8 * r;
      if (lanes >> 4 * quad & 15)
        recompute_row(args, tile, mask, own, softmax.exponent, scale, shift,
                      reciprocal_approx(sum));
    }
  }
}
