// Multi-head attention with its projection weights.
#pragma once

#include <cstdint>

namespace ashlar {

// q, k, v are projected per head, attended, and projected back; a projection size of 0 leaves that
// operand as it is (then its vector size must fit). Layouts and weights:
// docs/ops/multi_head_attention.md.
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

// q [B, beams, Tq, Dq]; k [B, 1 or beams, Tk, Dk] and v [B, the same, Tk, Dv]: one sequence for all
// beams, or one for each. weights [count] (absent without projections), residual as o. seq_len_q
// [B, beams, 1, 1], seq_len_kv [B, beams of k, 1, 1]. Query step t sees keys in [window_low[t],
// window_high[t]), both [1, 1, Tq, 1]. Per head h:
//   o_h = dropout(softmax(softmax_scale * (Wq_h q + bq_h)^T (Wk_h k + bk_h))) (Wv_h v + bv_h)
//   o = post_dropout(sum_h Wo_h o_h + bo) + residual, or the o_h one after the other without Wo.
// A query that sees no key has o_h = 0; rows past seq_len_q are 0.
struct MultiHeadAttentionForward : MultiHeadAttentionAttributes {
  enum In {
    q,
    k,
    v,
    weights,
    residual,
    seq_len_q,
    seq_len_kv,
    window_low,
    window_high,
    dropout_seed,
    dropout_offset,
    post_dropout_seed,
    post_dropout_offset
  };
  enum Out { o };
};
// Gradients for q, k and v. That of residual is d_o itself.
struct MultiHeadAttentionBackwardData : MultiHeadAttentionAttributes {
  enum In {
    q,
    k,
    v,
    weights,
    d_o,
    seq_len_q,
    seq_len_kv,
    window_low,
    window_high,
    dropout_seed,
    dropout_offset,
    post_dropout_seed,
    post_dropout_offset
  };
  enum Out { dq, dk, dv };
};
// dweights = gradient + previous, when that is given.
struct MultiHeadAttentionBackwardWeights : MultiHeadAttentionAttributes {
  enum In {
    q,
    k,
    v,
    weights,
    d_o,
    seq_len_q,
    seq_len_kv,
    window_low,
    window_high,
    dropout_seed,
    dropout_offset,
    post_dropout_seed,
    post_dropout_offset,
    previous
  };
  enum Out { dweights };
};

}  // namespace ashlar
