// Shared by attention forward and backward: scores, masks, pages, dropout.
#pragma once

#include <array>
#include <initializer_list>
#include <optional>

#include "base/dropout.hpp"
#include "reference/evaluate.hpp"
#include "reference/mma_rounding.hpp"
#include "reference/score_program.hpp"
#include "reference/softmax.hpp"

namespace ashlar::reference {

// The head dim is processed in blocks that fit the stack; scores are recomputed for each block.
inline constexpr std::int64_t kAttentionBlock = 128;

constexpr bool is_fp8(DType dtype) { return dtype == DType::e4m3 || dtype == DType::e5m2; }

// The key range visible to a row according to lengths and bounds.
struct Columns {
  std::int64_t begin = 0, end = 0;
  bool contains(std::int64_t j) const { return j >= begin && j < end; }
};

// The index of a score: batch, query head, query position, key position.
struct ScoreIndex {
  std::int64_t b, h, i, j;
};

template <class Scalar>
struct SoftmaxRow {
  Scalar largest = Scalar(-kInfinity);
  Scalar weights = Scalar(0.0);  // sum of exp(score - largest)
  // No visible column, or all visible scores are -inf.
  bool is_fully_masked() const { return nominal(largest) == -kInfinity; }
  Scalar stats() const { return is_fully_masked() ? Scalar(-kInfinity) : largest + log(weights); }
};

// Dot product of two rows along the last axis.
template <class View>
[[gnu::flatten]] typename View::Scalar dot(const View& a, Index a_row, const View& b, Index b_row) {
  a_row[3] = b_row[3] = 0;
  auto a_line = a.line(a_row, 3), b_line = b.line(b_row, 3);
  Accumulator<typename View::Scalar> sum;
  for (std::int64_t d = 0; d < a.dims()[3]; ++d) sum.add(a_line[d] * b_line[d]);
  return sum.total();
}

// Weighted sum of rows over one block of elements, starting at `first`.
template <class Scalar>
class RowAccumulator {
 public:
  RowAccumulator(std::int64_t first, std::int64_t size) : first_(first), size_(size) {}
  template <class View>
  void add(Scalar weight, const View& view, Index row) {
    row[3] = first_;
    auto line = view.line(row, 3);
    for (std::int64_t d = 0; d < size_; ++d)
      totals_[static_cast<std::size_t>(d)].add(weight * line[d]);
  }
  // The same as a GEMM computes it.
  template <class View>
  void add(const MmaRounding<Scalar>& product, Scalar weight, const View& view, Index row) {
    row[3] = first_;
    auto line = view.line(row, 3);
    for (std::int64_t d = 0; d < size_; ++d)
      totals_[static_cast<std::size_t>(d)].add(product.term(weight, line[d]));
  }
  // Calls body(index, total) for every element of the block.
  template <class Body>
  void for_each(Index row, const Body& body) const {
    for_each_sum(row, [&](const Index& at, const auto& sum) { body(at, sum.total()); });
  }
  template <class Body>
  void for_each(const MmaRounding<Scalar>& product, Index row, const Body& body) const {
    for_each_sum(row, [&](const Index& at, const auto& sum) { body(at, product.total(sum)); });
  }

 private:
  template <class Body>
  void for_each_sum(Index row, const Body& body) const {
    for (std::int64_t d = 0; d < size_; ++d) {
      row[3] = first_ + d;
      body(row, totals_[static_cast<std::size_t>(d)]);
    }
  }

  std::int64_t first_, size_;
  std::array<Accumulator<Scalar>, kAttentionBlock> totals_;
};

// Calls body(totals) for every block of a row of `width` elements.
template <class Scalar, class Body>
void for_each_block(std::int64_t width, const Body& body) {
  for (std::int64_t first = 0; first < width; first += kAttentionBlock) {
    RowAccumulator<Scalar> totals(first, std::min(kAttentionBlock, width - first));
    body(totals);
  }
}

// The ALiBi slope of query head h.
inline double alibi_slope(std::int64_t h, std::int64_t heads) {
  std::int64_t power = 1;
  while (power <= heads / 2) power *= 2;
  return h < power ? std::exp2(-8.0 * real(h + 1) / real(power))
                   : std::exp2(-4.0 * real(2 * (h - power) + 1) / real(power));
}

// x as a matmul operand of type `dtype`: fp8 rounds and saturates. An engine may round before it
// divides by the row sum, so the oracle allows a rounding to the type instead of predicting it.
// Rounding to other types is optional.
inline double as_operand(DType dtype, double x) {
  if (!is_fp8(dtype)) return x;
  return round_to(dtype, std::clamp(x, lowest_value(dtype), largest_value(dtype)));
}
template <Arithmetic A>
Approx<A> as_operand(DType dtype, Approx<A> x) {
  if (is_fp8(dtype)) {
    x = minimum(x, Approx<A>(largest_value(dtype)));
    x = maximum(x, Approx<A>(lowest_value(dtype)));
  }
  return allow_rounding_to(dtype, x);
}

template <class Attention, class Operands>
class AttentionProblem {
 public:
  using Scalar = typename Operands::Scalar;
  using View = typename Operands::View;

  AttentionProblem(const Attention& op, const Operands& operands)
      : op_(op),
        operands_(operands),
        q_(operands.input(Attention::q)),
        k_(operands.input(Attention::k)),
        v_(operands.input(Attention::v)),
        k_table_(optional_input(Attention::page_table_k)),
        v_table_(optional_input(Attention::page_table_v)),
        bias_(optional_input(Attention::bias)),
        sink_(optional_input(Attention::sink)),
        block_mask_(optional_input(Attention::block_mask)),
        dropout_mask_(optional_input(Attention::dropout_mask)),
        score_inputs_{optional_input(Attention::score_input0),
                      optional_input(Attention::score_input0 + 1),
                      optional_input(Attention::score_input0 + 2),
                      optional_input(Attention::score_input0 + 3)},
        score_product_(operands, q_.dtype(), k_.dtype()),
        scale_(given_scale()),
        score_scale_(times(scale_, {Attention::descale_q, Attention::descale_k})) {
    if (operands.has_input(Attention::dropout_seed))
      seed_ = static_cast<std::uint64_t>(operands.integer(Attention::dropout_seed));
    if (operands.has_input(Attention::dropout_offset))
      offset_ = static_cast<std::uint64_t>(operands.integer(Attention::dropout_offset));
  }

  Scalar scale() const { return scale_; }
  const View& q() const { return q_; }
  const View& k() const { return k_; }
  const View& v() const { return v_; }
  const std::optional<View>& k_table() const { return k_table_; }
  const std::optional<View>& v_table() const { return v_table_; }
  const std::optional<View>& sink() const { return sink_; }
  std::int64_t keys() const { return k_table_ || v_table_ ? *op_.max_seq_len_kv : k_.dims()[2]; }
  Dims scores() const { return {q_.dims()[0], q_.dims()[1], q_.dims()[2], keys()}; }

  // x times the one-element operands that are present.
  Scalar times(Scalar x, std::initializer_list<int> factors) const {
    for (int factor : factors)
      if (operands_.has_input(factor)) x = x * operands_.input(factor).load({0, 0, 0, 0});
    return x;
  }

  bool row_exists(std::int64_t b, std::int64_t i) const {
    return i < length(Attention::seq_len_q, b, q_.dims()[2]);
  }
  // Visible keys of row i: i + shift - left_bound < j <= i + shift + right_bound, within the
  // lengths.
  Columns columns(std::int64_t b, std::int64_t i) const {
    const std::int64_t rows = length(Attention::seq_len_q, b, q_.dims()[2]);
    const std::int64_t all = length(Attention::seq_len_kv, b, keys());
    if (i >= rows) return {};
    const std::int64_t diagonal = op_.alignment == MaskAlignment::bottom_right ? i + all - rows : i;
    Columns visible{0, all};
    // Bounds beyond the extents mask nothing; comparing first avoids integer overflow.
    if (op_.left_bound && *op_.left_bound <= diagonal)
      visible.begin = diagonal - *op_.left_bound + 1;
    if (op_.right_bound && *op_.right_bound < all - diagonal)
      visible.end = diagonal + *op_.right_bound + 1;
    return visible;
  }
  // Whether a score inside columns() is masked by block_mask or its key has no page.
  bool hidden(const ScoreIndex& at) const {
    if (block_mask_ && nominal(block_mask_->load(
                           {at.b, at.h, at.i / op_.block_rows, at.j / op_.block_columns})) == 0.0)
      return true;
    return !has_page(k_table_, k_, at.b, at.j) || !has_page(v_table_, v_, at.b, at.j);
  }

  // Row j of k or v of the head shared by query head h.
  Index k_row(const ScoreIndex& at) const { return key_row(k_table_, k_, at); }
  Index v_row(const ScoreIndex& at) const { return key_row(v_table_, v_, at); }
  // The block of key j of batch b; may be out of range.
  static std::int64_t page(const View& table, const View& container, std::int64_t b,
                           std::int64_t j) {
    return static_cast<std::int64_t>(nominal(table.load({b, 0, j / container.dims()[2], 0})));
  }

  Scalar scaled_score(const ScoreIndex& at) const {
    const Index q_row{at.b, at.h, at.i, 0};
    // A device without an engine for attention runs the forward operation as two GEMMs.
    if constexpr (std::is_same_v<Attention, AttentionForward>) {
      Accumulator<Scalar> sum;
      add_dot_product(score_product_, q_.line(q_row, 3), k_.line(k_row(at), 3), q_.dims()[3], sum);
      return score_scale_ * score_product_.total(sum);
    } else {
      return score_scale_ * dot(q_, q_row, k_, k_row(at));
    }
  }
  // The input of score_modifier.
  Scalar capped(Scalar scaled) const {
    if (!op_.soft_cap) return scaled;
    return Scalar(*op_.soft_cap) * tanh(scaled / Scalar(*op_.soft_cap));
  }
  ScoreValues<Scalar> program_operands(const ScoreIndex& at, Scalar score, Scalar gradient) const {
    ScoreValues<Scalar> values = {score, Scalar(real(at.i)), Scalar(real(at.j)), Scalar(real(at.b)),
                                  Scalar(real(at.h))};
    for (std::size_t n = 0; n < score_inputs_.size(); ++n)
      if (score_inputs_[n])
        values[static_cast<std::size_t>(kFirstScoreInput) + n] =
            score_inputs_[n]->load({at.b, at.h, at.i, at.j});
    values[static_cast<std::size_t>(kScoreGradient)] = gradient;
    return values;
  }
  Scalar score(const ScoreIndex& at) const {
    Scalar score = capped(scaled_score(at));
    if (!op_.score_modifier.empty())
      score = run_score_program(op_.score_modifier, program_operands(at, score, Scalar(0.0)));
    if (bias_) score = score + bias_->load({at.b, at.h, at.i, at.j});
    if (op_.alibi) {
      // The slope is a power of two to a fraction: a library function.
      const Scalar slope(alibi_slope(at.h, q_.dims()[1]));
      score = score + allow_units(slope, kFunctionUnits, slope) * Scalar(real(at.j - at.i));
    }
    return score;
  }

  // Calls body(index) for every visible score of row i.
  template <class Body>
  void for_each_visible(std::int64_t b, std::int64_t h, std::int64_t i, const Body& body) const {
    const Columns visible = columns(b, i);
    for (std::int64_t j = visible.begin; j < visible.end; ++j) {
      const ScoreIndex at{b, h, i, j};
      if (!hidden(at)) body(at);
    }
  }

  SoftmaxRow<Scalar> row_sum(std::int64_t b, std::int64_t h, std::int64_t i) const {
    SoftmaxRow<Scalar> sum;
    for_each_visible(b, h, i,
                     [&](const ScoreIndex& at) { sum.largest = maximum(sum.largest, score(at)); });
    const bool has_sink = sink_ && row_exists(b, i);
    if (has_sink) sum.largest = maximum(sum.largest, sink_->load({0, h, 0, 0}));
    if (sum.is_fully_masked()) return sum;
    Accumulator<Scalar> weights;
    for_each_visible(b, h, i, [&](const ScoreIndex& at) {
      weights.add(softmax_weight(score(at), sum.largest));
    });
    if (has_sink) weights.add(softmax_weight(sink_->load({0, h, 0, 0}), sum.largest));
    sum.weights = weights.total();
    return sum;
  }

  bool keeps(const ScoreIndex& at) const {
    if (dropout_mask_) return nominal(dropout_mask_->load({at.b, at.h, at.i, at.j})) != 0.0;
    const std::int64_t position = flatten(scores(), {at.b, at.h, at.i, at.j});
    return dropout_keeps(seed_, offset_, static_cast<std::uint64_t>(position), op_.dropout);
  }
  // Dropout: 0, or x / (1 - probability).
  Scalar kept(const ScoreIndex& at, Scalar x) const {
    if (op_.dropout == 0.0) return x;
    return keeps(at) ? x * Scalar(1.0 / (1.0 - op_.dropout)) : Scalar(0.0);
  }
  void dump_rng() const {
    if (!operands_.has_output(Attention::rng_dump)) return;
    const auto dump = operands_.output(Attention::rng_dump);
    for_each(dump.dims(), [&](const Index& at) {
      dump.store(at, Scalar(keeps({at[0], at[1], at[2], at[3]}) ? 1.0 : 0.0));
    });
  }

 private:
  std::optional<View> optional_input(int slot) const {
    return operands_.has_input(slot) ? std::optional<View>(operands_.input(slot)) : std::nullopt;
  }
  Scalar given_scale() const {
    if (operands_.has_input(Attention::scale_tensor))
      return operands_.input(Attention::scale_tensor).load({0, 0, 0, 0});
    return Scalar(op_.scale ? *op_.scale : 1.0 / std::sqrt(real(q_.dims()[3])));
  }
  std::int64_t length(int input, std::int64_t b, std::int64_t extent) const {
    if (!operands_.has_input(input)) return extent;
    const auto given =
        static_cast<std::int64_t>(nominal(operands_.input(input).load({b, 0, 0, 0})));
    return std::clamp<std::int64_t>(given, 0, extent);
  }
  static bool has_page(const std::optional<View>& table, const View& container, std::int64_t b,
                       std::int64_t j) {
    if (!table) return true;
    const std::int64_t block = page(*table, container, b, j);
    return block >= 0 && block < container.dims()[0];
  }
  Index key_row(const std::optional<View>& table, const View& container,
                const ScoreIndex& at) const {
    const std::int64_t head = at.h / (q_.dims()[1] / container.dims()[1]);
    if (!table) return {at.b, head, at.j, 0};
    return {page(*table, container, at.b, at.j), head, at.j % container.dims()[2], 0};
  }

  const Attention& op_;
  const Operands& operands_;
  View q_, k_, v_;
  std::optional<View> k_table_, v_table_, bias_, sink_, block_mask_, dropout_mask_;
  std::array<std::optional<View>, 4> score_inputs_;
  MmaRounding<Scalar> score_product_;
  Scalar scale_, score_scale_;
  std::uint64_t seed_ = 0, offset_ = 0;
};

}  // namespace ashlar::reference
