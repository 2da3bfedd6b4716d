// Epilogue of fused attention: threads store O and the row statistics from their registers.
// Requires sm90/attention_softmax.cuh. args.o, and args.stats, args.max, args.sum_exp where
// kHasStats, kHasMax, kHasSumExp, with strides [batch, head, row].
#include "lib/quad_rows.cuh"

// Row r of the thread.
__device__ inline void store_row(const Args& args, const AttentionTile& tile, int row, int r,
                                 const ValueMma::Fragment& output) {
  typename Element::Word* const o =
      (typename Element::Word*)args.o + (tile.batch * args.o_strides[0] +
                                         tile.head * args.o_strides[1] + row * args.o_strides[2]);
  store_quad_row<Element>(o, row < (int)args.queries ? (int)args.value_dim : 0, r, output);
}

template <bool kIsThere, class Pointer>
__device__ inline void store_statistic(Pointer to, const int64 (&strides)[3],
                                       const AttentionTile& tile, int row, float value) {
  if constexpr (kIsThere)
    ((float*)to)[tile.batch * strides[0] + tile.head * strides[1] + row * strides[2]] = value;
}

// `row`: the thread's first row. Rows without a seen key, and those past the length, are zeros.
__device__ inline void store_tile(const Args& args, const AttentionTile& tile, const RowMask& mask,
                                  int row, const OnlineSoftmax& softmax,
                                  ValueMma::Fragment& output) {
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    const int own = row + 8 * r;
    const float sum = softmax.sum[r];
    const bool is_empty = own >= mask.rows || sum == 0;
    const float factor = reciprocal_approx(sum);
#pragma unroll
    for (int i = 0; i < kValueDim / 4; ++i) {
      float& value = output[i / 2 * 4 + 2 * r + i % 2];
      value = is_empty ? 0 : value * factor;
    }
    store_row(args, tile, own, r, output);
    if (threadIdx.x % 4 != 0 || own >= (int)args.queries) continue;
    const float of_scores = kScalesScores ? 1 : (float)args.scale;
    const float largest = is_empty ? minus_infinity() : softmax.largest[r] * of_scores;
    const float log_sum =
        is_empty ? minus_infinity() : softmax.shift(r) * 0.693147181f + logf(sum);
    store_statistic<kHasStats>(args.stats, args.stats_strides, tile, own, log_sum);
    store_statistic<kHasMax>(args.max, args.max_strides, tile, own, largest);
    store_statistic<kHasSumExp>(args.sum_exp, args.sum_exp_strides, tile, own, is_empty ? 0 : sum);
  }
}
