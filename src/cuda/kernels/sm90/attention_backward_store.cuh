// Epilogue of the backward pass of fused attention: threads store dK and dV from their registers.
// Requires KeyMma, sm90/attention_backward_buffers.cuh and sm90/attention_backward_recompute.cuh;
// args.d_k and args.d_v with strides [batch, head, row].
#include "lib/quad_rows.cuh"

struct KeyGradients {
  KeyMma::Fragment keys, values;

  __device__ KeyGradients() {
#pragma unroll
    for (int i = 0; i < kHeadDim / 2; ++i) keys[i] = values[i] = 0;
  }
};

// A row of dK and dV.
__device__ inline void recompute_key(const Args& args, const RowMask& mask, int batch, int key_head,
                                     int key, float scale) {
  const int lane = opaque((int)threadIdx.x % 32), heads = (int)args.heads_of_key;
  const PoisonedRow keys(args.d_k, args.d_k_strides, batch, key_head, key, lane, 0,
                         (int)args.head_dim);
  const PoisonedRow values(args.d_v, args.d_v_strides, batch, key_head, key, lane, 0,
                           (int)args.value_dim);
  const RowOperands own = RowOperands::of_key(args, batch, key_head, key, lane);
  RowSums sums;
  bool is_open = true;
#pragma unroll 1
  for (int head = key_head * heads; is_open && head < (key_head + 1) * heads; ++head) {
    const int64 first = (int64)(batch * (int)args.heads + head) * (int)args.tiles_m * kBlockM;
#pragma unroll 1
    for (int row = mask.first_row(key); is_open && row < mask.end_row(key); ++row) {
      sums.add(args, own, RowOperands::of_query(args, batch, head, row, lane), first + row,
               scale * 1.44269504f);
      is_open = __any_sync(~0u, keys.is_open(sums.first) || values.is_open(sums.second));
    }
  }
  keys.replace(sums.first, scale);
  values.replace(sums.second, 1);
}

// Rows of dK or dV; those past the length are zeros.
template <class Pointer>
__device__ inline void store_key_gradient(const Args& args, Pointer data,
                                          const int64 (&strides)[3], const KeyTile& tile, int key,
                                          int columns, float scale, KeyMma::Fragment& gradient) {
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    const int own = key + 8 * r;
#pragma unroll
    for (int i = 0; i < kHeadDim / 4; ++i) {
      float& value = gradient[i / 2 * 4 + 2 * r + i % 2];
      value = own < tile.mask.keys ? value * scale : 0;
    }
    typename Element::Word* const row =
        (typename Element::Word*)data +
        (tile.batch * strides[0] + tile.key_head * strides[1] + own * strides[2]);
    store_quad_row<Element>(row, own < (int)args.keys ? columns : 0, r, gradient);
  }
}

__device__ inline void store_key_gradients(const Args& args, int key, KeyGradients& sums) {
  // Found again, so that it does not take registers during the mainloop.
  const KeyTile tile = KeyTile::of_cta(args);
  store_key_gradient(args, args.d_k, args.d_k_strides, tile, key, (int)args.head_dim,
                     score_scale(args), sums.keys);
  store_key_gradient(args, args.d_v, args.d_v_strides, tile, key, (int)args.value_dim, 1,
                     sums.values);
  if constexpr (kHasLeftBound || kHasRightBound)
#pragma unroll
    for (int r = 0; r < 2; ++r)
      for_poisoned_rows(probe_row(sums.keys, r) + probe_row(sums.values, r), [&](int quad) {
        const int own = __shfl_sync(~0u, key, 4 * quad) + 8 * r;
        recompute_key(args, tile.mask, tile.batch, tile.key_head, own, score_scale(args));
      });
}
