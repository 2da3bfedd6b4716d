// What attention forward and backward share: scores, masks, dropout.
#pragma once

#include <array>

#include "base/dropout.hpp"
#include "reference/evaluate.hpp"
#include "reference/softmax.hpp"

namespace ashlar::reference {

// Head dims are worked on in blocks that fit the stack; scores are computed anew for each block.
inline constexpr std::int64_t kAttentionBlock = 128;

// The columns a row sees.
struct Columns {
  std::int64_t begin = 0, end = 0;
  bool contains(std::int64_t j) const { return j >= begin && j < end; }
};

template <class Scalar>
struct RowSum {
  Scalar largest = Scalar(-kInfinity);
  Scalar weights = Scalar(0.0);  // sum of exp(score - largest)
  // No visible column, or nothing but -inf in them.
  bool sees_nothing() const { return nominal(largest) == -kInfinity; }
  Scalar stats() const { return sees_nothing() ? Scalar(-kInfinity) : largest + log(weights); }
};

// Scalar product of two rows, along the last axis.
template <class View>
typename View::Scalar dot(const View& a, Index a_row, const View& b, Index b_row) {
  Accumulator<typename View::Scalar> sum;
  for (std::int64_t d = 0; d < a.dims()[3]; ++d) {
    a_row[3] = b_row[3] = d;
    sum.add(a.load(a_row) * b.load(b_row));
  }
  return sum.total();
}

// Weighted sums of rows: kAttentionBlock of their elements, starting at `first`.
template <class Scalar>
class RowAccumulator {
 public:
  RowAccumulator(std::int64_t first, std::int64_t size) : first_(first), size_(size) {}
  template <class View>
  void add(Scalar weight, const View& view, Index row) {
    for (std::int64_t d = 0; d < size_; ++d) {
      row[3] = first_ + d;
      totals_[static_cast<std::size_t>(d)].add(weight * view.load(row));
    }
  }
  // Stores finish(total) to every element of the block.
  template <class View, class Finish>
  void store(const View& view, Index row, const Finish& finish) const {
    for (std::int64_t d = 0; d < size_; ++d) {
      row[3] = first_ + d;
      view.store(row, finish(totals_[static_cast<std::size_t>(d)].total()));
    }
  }

 private:
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
        bias_(operands.input(operands.has_input(Attention::bias) ? Attention::bias : Attention::q)),
        has_bias_(operands.has_input(Attention::bias)),
        scale_(given_scale()) {
    if (operands.has_input(Attention::dropout_seed))
      seed_ = static_cast<std::uint64_t>(operands.integer(Attention::dropout_seed));
    if (operands.has_input(Attention::dropout_offset))
      offset_ = static_cast<std::uint64_t>(operands.integer(Attention::dropout_offset));
  }

  Scalar scale() const { return scale_; }

  // Row i sees i + shift - left_bound < j <= i + shift + right_bound, inside the lengths.
  Columns columns(std::int64_t b, std::int64_t i) const {
    const std::int64_t rows = length(Attention::seq_len_q, b, q_.dims()[2]);
    const std::int64_t all = length(Attention::seq_len_kv, b, k_.dims()[2]);
    if (i >= rows) return {};
    const std::int64_t diagonal = op_.alignment == MaskAlignment::bottom_right ? i + all - rows : i;
    Columns visible{0, all};
    // Bounds past the extents mask nothing; comparing first keeps the sums from overflowing.
    if (op_.left_bound && *op_.left_bound <= diagonal)
      visible.begin = diagonal - *op_.left_bound + 1;
    if (op_.right_bound && *op_.right_bound < all - diagonal)
      visible.end = diagonal + *op_.right_bound + 1;
    return visible;
  }

  Scalar score(std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t j) const {
    const Scalar score = scale_ * dot(q_, {b, h, i, 0}, k_, row_for_head(k_, b, h, j));
    return has_bias_ ? score + bias_.load({b, h, i, j}) : score;
  }
  // Row j of k or v, of the head that serves query head h.
  Index row_for_head(const View& k_or_v, std::int64_t b, std::int64_t h, std::int64_t j) const {
    return {b, h / (q_.dims()[1] / k_or_v.dims()[1]), j, 0};
  }
  const View& q() const { return q_; }
  const View& k() const { return k_; }
  const View& v() const { return v_; }

  RowSum<Scalar> row_sum(std::int64_t b, std::int64_t h, std::int64_t i) const {
    const Columns visible = columns(b, i);
    RowSum<Scalar> sum;
    for (std::int64_t j = visible.begin; j < visible.end; ++j)
      sum.largest = maximum(sum.largest, score(b, h, i, j));
    if (sum.sees_nothing()) return sum;
    Accumulator<Scalar> weights;
    for (std::int64_t j = visible.begin; j < visible.end; ++j)
      weights.add(softmax_weight(score(b, h, i, j), sum.largest));
    sum.weights = weights.total();
    return sum;
  }

  // Dropout: 0, or x / (1 - probability).
  Scalar kept(std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t j, Scalar x) const {
    if (op_.dropout == 0.0) return x;
    bool keeps;
    if (operands_.has_input(Attention::dropout_mask)) {
      keeps = nominal(operands_.input(Attention::dropout_mask).load({b, h, i, j})) != 0.0;
    } else {
      const std::int64_t position =
          flatten({q_.dims()[0], q_.dims()[1], q_.dims()[2], k_.dims()[2]}, {b, h, i, j});
      keeps = dropout_keeps(seed_, offset_, static_cast<std::uint64_t>(position), op_.dropout);
    }
    return keeps ? x * Scalar(1.0 / (1.0 - op_.dropout)) : Scalar(0.0);
  }

  // Weights and their gradients may be rounded to q's dtype before they are multiplied: matrix
  // units take both factors in one type.
  Scalar rounded(Scalar x) const { return allow_rounding_to(q_.dtype(), x); }

 private:
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

  const Attention& op_;
  const Operands& operands_;
  View q_, k_, v_, bias_;
  bool has_bias_;
  Scalar scale_;
  std::uint64_t seed_ = 0, offset_ = 0;
};

}  // namespace ashlar::reference
