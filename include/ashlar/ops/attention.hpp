// Scaled dot-product attention, forward and backward.
#pragma once

#include <ashlar/dims.hpp>
#include <ashlar/ops/pointwise.hpp>
#include <ashlar/ops/slots.hpp>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace ashlar {

// One step of a score program, a straight-line pointwise program on one attention score. Values are
// numbered: 0 the score (scaled and soft-capped), 1 the query position, 2 the key position, 3 the
// batch, 4 the head, 5 to 8 the operands score_input0 to score_input3, 9 (in
// score_modifier_gradient only) the gradient of the modified score; step n computes value
// kFirstScoreStep + n. Booleans are 1 and 0.
struct ScoreStep {
  Pointwise op = {};
  Dims args = {};                       // value numbers of x, b and predicate, as the mode requires
  std::optional<double> constant = {};  // the step is this constant instead of an operation

  template <class Self, class Visitor>
  static void attributes(Self& self, Visitor&& visit) {
    visit("args", self.args);
    visit("constant", self.constant);
    Pointwise::attributes(self.op, visit);
  }
};
inline constexpr std::int64_t kFirstScoreInput = 5;
inline constexpr std::int64_t kScoreGradient = 9;
inline constexpr std::int64_t kFirstScoreStep = 10;
inline constexpr std::size_t kMaxScoreSteps = 64;
// The value of the last step is the modified score. An empty program is the identity.
using ScoreProgram = std::vector<ScoreStep>;

enum class MaskAlignment : std::uint8_t { top_left, bottom_right };

// Query row i sees key column j when i + shift - left_bound < j <= i + shift + right_bound, where
// shift is 0 (top_left) or kv_length - q_length (bottom_right). An absent bound does not mask.
//
// score = modifier(cap(scale * q k^T)) + bias + alibi, with cap(x) = soft_cap * tanh(x / soft_cap).
// The modifier follows the cap, so scores it sets to -inf stay masked. ALiBi adds
// slope(h) * (j - i). With n the largest power of two not above H, slope(h) is 2^(-8 (h + 1) / n)
// for the first n heads and 2^(-4 (2 (h - n) + 1) / n) for the rest.
struct AttentionAttributes {
  std::optional<double> scale = {};  // default: 1 / sqrt(head dim)
  std::optional<std::int64_t> left_bound = {};
  std::optional<std::int64_t> right_bound = {};
  MaskAlignment alignment = MaskAlignment::top_left;
  double dropout = 0.0;  // probability that a weight is dropped
  bool alibi = false;
  std::optional<double> soft_cap = {};
  ScoreProgram score_modifier = {};
  // Paged k and v: maximum number of keys per batch. Default: the capacity of the page table.
  std::optional<std::int64_t> max_seq_len_kv = {};
  // Rows and columns of the score matrix covered by one element of block_mask.
  std::int64_t block_rows = 128;
  std::int64_t block_columns = 128;

  template <class Self, class Visitor>
  static void attributes(Self& self, Visitor&& visit) {
    visit("scale", self.scale);
    visit("left_bound", self.left_bound);
    visit("right_bound", self.right_bound);
    visit("alignment", self.alignment);
    visit("dropout", self.dropout);
    visit("alibi", self.alibi);
    visit("soft_cap", self.soft_cap);
    visit("score_modifier", self.score_modifier);
    visit("max_seq_len_kv", self.max_seq_len_kv);
    visit("block_rows", self.block_rows);
    visit("block_columns", self.block_columns);
  }
};

// o = dropout(softmax(mask(score))) v, per batch and head.
// q [B, H, Sq, D], k [B, Hk, Skv, D], v [B, Hv, Skv, Dv]; Hk and Hv divide H (GQA, MQA).
// seq_len_q, seq_len_kv [B, 1, 1, 1]. stats, max, sum_exp [B, H, Sq, 1]: max is the row maximum of
// the scores, sum_exp the sum of exp(score - max), stats = max + log(sum_exp). A fully masked row
// has o = 0, stats = max = -inf, sum_exp = 0. scale_tensor overrides the attribute scale.
// dropout_mask (true = keep) replaces seed and offset; rng_dump [B, H, Sq, Skv] is the generated
// mask, including masked-out scores.
// Paged: with page_table_k / page_table_v [B, 1, pages, 1], k / v are containers
// [blocks, Hk, block, D], and key j of batch b is container[page_table[b][j / block]][h][j %
// block]. A key whose page number is out of range is masked out.
// sink [1, H, 1, 1] enters the softmax (hence max, sum_exp and stats) of every row before seq_len_q
// as an additional key without a value. block_mask
// [B, H, ceil(Sq / block_rows), ceil(Skv / block_columns)] is boolean: false masks a block.
// fp8: s = descale_q * descale_k * scale * q k^T; p = dropout(softmax(s)); amax_s = max |p|;
// o' = descale_s * descale_v * (p * scale_s as q's type) v; amax_o = max |o'|; o = o' * scale_o.
// Every descale_, scale_ and amax_ operand has one element; an absent one is 1.
struct AttentionForward : AttentionAttributes {
  ASHLAR_INPUTS(q, k, v,
                ASHLAR_OPTIONAL(bias, seq_len_q, seq_len_kv, dropout_seed, dropout_offset,
                                dropout_mask, scale_tensor, page_table_k, page_table_v, sink,
                                block_mask, score_input0, score_input1, score_input2, score_input3,
                                descale_q, descale_k, descale_v, descale_s, scale_s, scale_o));
  ASHLAR_OUTPUTS(o, ASHLAR_OPTIONAL(stats, max, sum_exp, rng_dump, amax_s, amax_o));
};

// Gradients of the forward operation with the same attributes and operands; o and stats are its
// results. dk and dv have the dims of k and v (of the containers if paged). score_modifier is
// differentiated automatically unless score_modifier_gradient is given: a program that computes the
// gradient of value 0 from the gradient of the modified score (value 9). Score inputs have no
// gradient.
// fp8: p and dp = descale_do * descale_v * do v^T as in the forward operation,
// delta = descale_do * descale_o * sum(do * o), ds = scale * (gradient of the scaled score),
// amax_dp = max |ds|; with p' = p * scale_s as q's type and ds' = ds * scale_dp as do's type:
// dv = scale_dv * (descale_s * descale_do * p'^T do), dq = scale_dq * (descale_dp * descale_k *
// ds' k), dk = scale_dk * (descale_dp * descale_q * ds'^T q); amax_dq, amax_dk and amax_dv are the
// maximum magnitudes of the parenthesised expressions.
struct AttentionBackward : AttentionAttributes {
  ASHLAR_INPUTS(q, k, v, o, d_o, stats,
                ASHLAR_OPTIONAL(bias, seq_len_q, seq_len_kv, dropout_seed, dropout_offset,
                                dropout_mask, scale_tensor, page_table_k, page_table_v, sink,
                                block_mask, score_input0, score_input1, score_input2, score_input3,
                                descale_q, descale_k, descale_v, descale_o, descale_do, descale_s,
                                descale_dp, scale_s, scale_dq, scale_dk, scale_dv, scale_dp));
  ASHLAR_OUTPUTS(dq, dk, dv,
                 ASHLAR_OPTIONAL(dbias, dsink, rng_dump, amax_dq, amax_dk, amax_dv, amax_dp));
  ScoreProgram score_modifier_gradient = {};

  template <class Self, class Visitor>
  static void attributes(Self& self, Visitor&& visit) {
    AttentionAttributes::attributes(self, visit);
    visit("score_modifier_gradient", self.score_modifier_gradient);
  }
};

}  // namespace ashlar
