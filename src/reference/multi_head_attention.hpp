// What the three multi-head attention operations share. Per batch b, beam m and head h:
//   q^_i = Wq q_i + bq, k^_j = Wk k_j + bk, v^_j = Wv v_j + bv      (x itself without a projection)
//   s_ij = scale * sum_p q^_ip k^_jp                                for the keys j that step i sees
//   p_ij = exp(s_ij - stats_i), stats_i = log(sum_j exp(s_ij))
//   o_hi = sum_j keep_ij p_ij v^_j                                  keep_ij: 0 or 1 / (1 - dropout)
//   o_i  = keep_i (Wo [o_1i, ..., o_Hi] + bo) + residual_i
// Projected vectors are computed anew wherever they are used: nothing is allocated.
#pragma once

#include "base/dropout.hpp"
#include "graph/multi_head_shapes.hpp"
#include "reference/attention.hpp"

namespace ashlar::reference {

// A vector of one head is worked on in blocks that fit the stack.
inline constexpr std::int64_t kHeadBlock = 64;

// Elements [first, first + count) of a vector of one head.
template <class Scalar>
struct HeadBlock {
  std::int64_t first = 0, count = 0;
  std::array<Scalar, kHeadBlock> values = {};
};

// Calls body(first, count) for every block of a vector.
template <class Body>
void for_each_head_block(std::int64_t size, const Body& body) {
  for (std::int64_t first = 0; first < size; first += kHeadBlock)
    body(first, std::min(kHeadBlock, size - first));
}

// A place in q, o (row: query step) or in k, v (row: key step).
struct HeadRow {
  std::int64_t b, beam, head, row;
};

template <class Op, class Operands>
class MultiHeadProblem {
 public:
  using Scalar = typename Operands::Scalar;
  using View = typename Operands::View;
  using Block = HeadBlock<Scalar>;

  MultiHeadProblem(const Op& op, const Operands& operands)
      : operands_(operands),
        q_(operands.input(Op::q)),
        k_(operands.input(Op::k)),
        v_(operands.input(Op::v)),
        weights_(operands.input(operands.has_input(Op::weights) ? Op::weights : Op::q)),
        shape_(op, q_.dims(), k_.dims(), v_.dims()),
        scale_(op.softmax_scale),
        dropout_(operands, Op::dropout_seed, Op::dropout_offset, op.attention_dropout),
        post_dropout_(operands, Op::post_dropout_seed, Op::post_dropout_offset, op.post_dropout) {}

  const MultiHeadShape& shape() const { return shape_; }
  const Operands& operands() const { return operands_; }
  Scalar scale() const { return scale_; }
  Scalar weight(std::int64_t element) const { return weights_.load({element}); }
  // q, k or v as given.
  const View& source(MultiHeadPart part) const {
    return part == MultiHeadPart::query ? q_ : part == MultiHeadPart::key ? k_ : v_;
  }
  std::int64_t head_size(MultiHeadPart part) const {
    return part == MultiHeadPart::value ? shape_.value_size : shape_.head_size;
  }

  // Element p of a projected query, key or value.
  Scalar projected(MultiHeadPart part, const HeadRow& at, std::int64_t p) const {
    const View& x = source(part);
    const MultiHeadProjection& projection = shape_[part];
    if (!projection.present) return x.load({at.b, at.beam, at.row, p});
    const std::int64_t row = at.head * head_size(part) + p;
    Accumulator<Scalar> sum;
    for (std::int64_t c = 0; c < projection.columns; ++c)
      sum.add(weight(projection.matrix + row * projection.columns + c) *
              x.load({at.b, at.beam, at.row, c}));
    return shape_.has_biases ? sum.total() + weight(projection.bias + row) : sum.total();
  }

  std::int64_t query_length(std::int64_t b, std::int64_t beam) const {
    return length(Op::seq_len_q, {b, beam, 0, 0}, shape_.queries);
  }
  std::int64_t key_length(std::int64_t b, std::int64_t key_beam) const {
    return length(Op::seq_len_kv, {b, key_beam, 0, 0}, shape_.keys);
  }
  bool is_padding(std::int64_t b, std::int64_t beam, std::int64_t i) const {
    return i >= query_length(b, beam);
  }
  // The keys that query step i sees.
  Columns columns(std::int64_t b, std::int64_t beam, std::int64_t i) const {
    if (is_padding(b, beam, i)) return {};
    const std::int64_t all = key_length(b, shape_.key_beam(beam));
    Columns seen{0, all};
    if (operands_.has_input(Op::window_low)) seen.begin = length(Op::window_low, {0, 0, i, 0}, all);
    if (operands_.has_input(Op::window_high)) seen.end = length(Op::window_high, {0, 0, i, 0}, all);
    return seen;
  }

  HeadRow key_row(const HeadRow& query, std::int64_t j) const {
    return {query.b, shape_.key_beam(query.beam), query.head, j};
  }
  Scalar score(const HeadRow& query, std::int64_t j) const {
    Accumulator<Scalar> sum;
    for (std::int64_t p = 0; p < shape_.head_size; ++p)
      sum.add(projected(MultiHeadPart::query, query, p) *
              projected(MultiHeadPart::key, key_row(query, j), p));
    return scale_ * sum.total();
  }
  RowSum<Scalar> row_sum(const HeadRow& query) const {
    const Columns seen = columns(query.b, query.beam, query.row);
    RowSum<Scalar> sum;
    for (std::int64_t j = seen.begin; j < seen.end; ++j)
      sum.largest = maximum(sum.largest, score(query, j));
    if (sum.sees_nothing()) return sum;
    Accumulator<Scalar> weights;
    for (std::int64_t j = seen.begin; j < seen.end; ++j)
      weights.add(softmax_weight(score(query, j), sum.largest));
    sum.weights = weights.total();
    return sum;
  }

  // Elements of o_h of a query step.
  Block head_output(const HeadRow& query, const RowSum<Scalar>& sum, std::int64_t first,
                    std::int64_t count) const {
    Block block{first, count};
    if (sum.sees_nothing()) return block;
    const Columns seen = columns(query.b, query.beam, query.row);
    std::array<Accumulator<Scalar>, kHeadBlock> totals;
    for (std::int64_t j = seen.begin; j < seen.end; ++j) {
      const Scalar weight = rounded(kept(query, j, softmax_weight(score(query, j), sum.largest)));
      for (std::int64_t p = 0; p < count; ++p)
        at(totals, p).add(weight * projected(MultiHeadPart::value, key_row(query, j), first + p));
    }
    for (std::int64_t p = 0; p < count; ++p)
      at(block.values, p) = at(totals, p).total() / sum.weights;
    return block;
  }

  // Dropout of a weight, and of an element of o.
  Scalar kept(const HeadRow& query, std::int64_t j, Scalar x) const {
    return dropout_.apply(shape_.weight_position(query.b, query.beam, query.head, query.row, j), x);
  }
  Scalar post_kept(const Index& element, Scalar x) const {
    return post_dropout_.apply(flatten(shape_.o_dims(), element), x);
  }
  // Weights and their gradients may be rounded to q's dtype before they are multiplied.
  Scalar rounded(Scalar x) const { return allow_rounding_to(q_.dtype(), x); }

  template <class Array>
  static auto& at(Array& array, std::int64_t i) {
    return array[static_cast<std::size_t>(i)];
  }

 private:
  class Dropout {
   public:
    Dropout(const Operands& operands, int seed, int offset, double probability)
        : probability_(probability) {
      if (operands.has_input(seed)) seed_ = static_cast<std::uint64_t>(operands.integer(seed));
      if (operands.has_input(offset))
        offset_ = static_cast<std::uint64_t>(operands.integer(offset));
    }
    Scalar apply(std::int64_t position, Scalar x) const {
      if (probability_ == 0.0) return x;
      if (!dropout_keeps(seed_, offset_, static_cast<std::uint64_t>(position), probability_))
        return Scalar(0.0);
      return x * Scalar(1.0 / (1.0 - probability_));
    }

   private:
    double probability_;
    std::uint64_t seed_ = 0, offset_ = 0;
  };

  // A length or window bound, brought into [0, extent].
  std::int64_t length(int input, const Index& index, std::int64_t extent) const {
    if (!operands_.has_input(input)) return extent;
    const double given = nominal(operands_.input(input).load(index));
    return static_cast<std::int64_t>(std::clamp(given, 0.0, real(extent)));
  }

  const Operands& operands_;
  View q_, k_, v_, weights_;
  MultiHeadShape shape_;
  Scalar scale_;
  Dropout dropout_, post_dropout_;
};

}  // namespace ashlar::reference
