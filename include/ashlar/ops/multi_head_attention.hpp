// Multi-head attention with its projection weights.
#pragma once

#include <ashlar/ops/slots.hpp>
#include <cstdint>

namespace ashlar {

// Projects q, k and v per head, applies attention, and projects the result. A projection size of 0
// means no projection of that operand. docs/ops/multi_head_attention.md defines the weight layout.
struct MultiHeadAttentionAttributes {
  std::int64_t heads = 1;
  std::int64_t q_projection = 0;  // per head; equal to k_projection where both are used
  std::int64_t k_projection = 0;
  std::int64_t v_projection = 0;
  std::int64_t o_projection = 0;  // of the sum over all heads
  bool projection_biases = false;
  double softmax_scale = 1.0;
  double attention_dropout = 0.0;
  double post_dropout = 0.0;

  template <class Self, class Visitor>
  static void attributes(Self& self, Visitor&& visit) {
    visit("heads", self.heads);
    visit("q_projection", self.q_projection);
    visit("k_projection", self.k_projection);
    visit("v_projection", self.v_projection);
    visit("o_projection", self.o_projection);
    visit("projection_biases", self.projection_biases);
    visit("softmax_scale", self.softmax_scale);
    visit("attention_dropout", self.attention_dropout);
    visit("post_dropout", self.post_dropout);
  }
};

// q [B, beams, Tq, Dq]; k [B, Bk, Tk, Dk] and v [B, Bk, Tk, Dv] with Bk = 1 (all beams share keys
// and values) or Bk = beams. weights [count] (absent without projections); residual has the dims of
// o. seq_len_q [B, beams, 1, 1], seq_len_kv [B, Bk, 1, 1]. Query step t attends to keys in
// [window_low[t], window_high[t]), both [1, 1, Tq, 1]. Per head h:
//   o_h = dropout(softmax(softmax_scale * (Wq_h q + bq_h)^T (Wk_h k + bk_h))) (Wv_h v + bv_h)
//   o = post_dropout(sum_h Wo_h o_h + bo) + residual; without Wo the o_h are concatenated.
// A fully masked query has o_h = 0; rows past seq_len_q are 0.
struct MultiHeadAttentionForward : MultiHeadAttentionAttributes {
  ASHLAR_INPUTS(q, k, v,
                ASHLAR_OPTIONAL(weights, residual, seq_len_q, seq_len_kv, window_low, window_high,
                                dropout_seed, dropout_offset, post_dropout_seed,
                                post_dropout_offset));
  ASHLAR_OUTPUTS(o);
};
// Gradients of q, k and v. The gradient of residual is d_o.
struct MultiHeadAttentionBackwardData : MultiHeadAttentionAttributes {
  ASHLAR_INPUTS(q, k, v, ASHLAR_OPTIONAL(weights), d_o,
                ASHLAR_OPTIONAL(seq_len_q, seq_len_kv, window_low, window_high, dropout_seed,
                                dropout_offset, post_dropout_seed, post_dropout_offset));
  ASHLAR_OUTPUTS(dq, dk, dv);
};
// dweights = gradient + previous; an absent previous is 0.
struct MultiHeadAttentionBackwardWeights : MultiHeadAttentionAttributes {
  ASHLAR_INPUTS(q, k, v, weights, d_o,
                ASHLAR_OPTIONAL(seq_len_q, seq_len_kv, window_low, window_high, dropout_seed,
                                dropout_offset, post_dropout_seed, post_dropout_offset, previous));
  ASHLAR_OUTPUTS(dweights);
};

}  // namespace ashlar
