// Shared by the three multi-head attention operations. Per batch b, beam m and head h:
//   q^_i = Wq q_i + bq, k^_j = Wk k_j + bk, v^_j = Wv v_j + bv      (x itself without a projection)
//   s_ij = scale * sum_p q^_ip k^_jp                                for the keys j that step i sees
//   p_ij = exp(s_ij - stats_i), stats_i = log(sum_j exp(s_ij))
//   o_hi = sum_j keep_ij p_ij v^_j                                  keep_ij: 0 or 1 / (1 - dropout)
//   o_i  = keep_i (Wo [o_1i, ..., o_Hi] + bo) + residual_i
#pragma once

#include "graph/multi_head_shapes.hpp"
#include "reference/attention.hpp"
#include "reference/mma_rounding.hpp"
#include "reference/scratch.hpp"

namespace ashlar::reference {

// A query step (row of q, o) or a key step (row of k, v), and a head.
struct HeadRow {
  std::int64_t b, beam, row, head = 0;
};

// An array [batch, beams, rows, heads, size]: the vectors of all heads of a step are contiguous.
struct HeadVectors {
  std::int64_t beams = 0, rows = 0, heads = 0, size = 0;
  std::int64_t first = 0;  // element in the scratch memory
  std::int64_t operator()(const HeadRow& at) const {
    return first + (((at.b * beams + at.beam) * rows + at.row) * heads + at.head) * size;
  }
};

struct MultiHeadArrays {
  MultiHeadArrays(const MultiHeadShape& shape, bool gradients) {
    const auto place = [&](std::int64_t& used, HeadVectors array) {
      array.first = used;
      std::int64_t count = shape.batch;
      for (std::int64_t extent : {array.beams, array.rows, array.heads, array.size})
        count = checked_mul(count, extent);
      used = checked_add(used, count);
      return array;
    };
    const auto of_queries = [&](std::int64_t size) {
      return place(need.numbers, {shape.beams, shape.queries, shape.heads, size});
    };
    const auto of_keys = [&](std::int64_t size) {
      return place(need.numbers, {shape.key_beams, shape.keys, shape.heads, size});
    };
    seen = place(need.integers, {shape.beams, shape.queries, shape.heads, 2});
    q = of_queries(shape.head_size), k = of_keys(shape.head_size), v = of_keys(shape.value_size);
    scores = of_queries(shape.keys), weights = of_queries(shape.keys), stats = of_queries(1);
    o = of_queries(shape.value_size);
    if (!gradients) return;
    d_output = place(need.numbers, {shape.beams, shape.queries, 1, shape.o_size});
    d_o = of_queries(shape.value_size), ds = of_queries(shape.keys), p = of_queries(shape.keys);
    dq = of_queries(shape.head_size), dk = of_keys(shape.head_size);
    dv = of_keys(shape.value_size);
  }

  ScratchNeed need;
  HeadVectors seen;      // integers: begin and end of the visible keys
  HeadVectors q, k, v;   // projected
  HeadVectors scores;    // s_ij
  HeadVectors weights;   // keep_ij exp(s_ij - max_j s_ij)
  HeadVectors stats, o;  // stats_i, o_hi
  // For the gradients, in the notation of multi_head_attention_backward.cpp:
  HeadVectors d_output, d_o;  // do'_i, do_hi
  HeadVectors ds, p;          // ds_ij, keep_ij p_ij
  HeadVectors dq, dk, dv;     // projected
};

template <class MultiHead>
ScratchNeed multi_head_need(const MultiHead& op, const InputDims& dims) {
  const MultiHeadShape shape(op, dims(MultiHead::q), dims(MultiHead::k), dims(MultiHead::v));
  return MultiHeadArrays(shape, !std::is_same_v<MultiHead, MultiHeadAttentionForward>).need;
}

// Computes everything up to o_hi.
template <class Op, class Operands>
class MultiHeadProblem {
 public:
  using Scalar = typename Operands::Scalar;
  using View = typename Operands::View;

  MultiHeadProblem(const Op& attention, const Operands& given)
      : op(attention),
        operands(given),
        sources{given.input(Op::q), given.input(Op::k), given.input(Op::v)},
        shape(op, sources[0].dims(), sources[1].dims(), sources[2].dims()),
        arrays(shape, !std::is_same_v<Op, MultiHeadAttentionForward>),
        scale(op.softmax_scale),
        product(given, DType::f32, DType::f32),
        weights_(given.input(given.has_input(Op::weights) ? Op::weights : Op::q)),
        scratch_(given, arrays.need),
        numbers_(scratch_.numbers()),
        integers_(scratch_.integers()) {
    project(sources[0], shape[MultiHeadPart::query], arrays.q);
    project(sources[1], shape[MultiHeadPart::key], arrays.k);
    project(sources[2], shape[MultiHeadPart::value], arrays.v);
    for_each_row(arrays.o, [&](const HeadRow& query) { attend(query); });
  }

  // The vector of a head; head 0 is followed by the vectors of all other heads.
  Scalar* at(const HeadVectors& array, const HeadRow& row) const { return numbers_ + array(row); }
  // Calls body(row) for every vector of an array, in parallel.
  template <class Body>
  void for_each_row(const HeadVectors& array, const Body& body) const {
    for_each({shape.batch, array.beams, array.rows, array.heads}, [&](const Index& i) {
      body(HeadRow{i[0], i[1], i[2], i[3]});
    });
  }

  // Element `row` of W x + b, element `column` of W^T x.
  template <class Vector>
  Scalar projected(const MultiHeadProjection& w, std::int64_t row, const Vector& x) const {
    Accumulator<Scalar> sum;
    for (std::int64_t c = 0; c < w.columns; ++c)
      sum.add(product.term(weights_.load({w.matrix + row * w.columns + c}), x(c)));
    return shape.has_biases ? product.total(sum) + weights_.load({w.bias + row})
                            : product.total(sum);
  }
  Scalar projected_back(const MultiHeadProjection& w, std::int64_t column, const Scalar* x) const {
    Accumulator<Scalar> sum;
    for (std::int64_t r = 0; r < w.rows; ++r)
      sum.add(product.term(weights_.load({w.matrix + r * w.columns + column}), x[r]));
    return product.total(sum);
  }

  std::int64_t query_length(std::int64_t b, std::int64_t beam) const {
    return bound(Op::seq_len_q, {b, beam, 0, 0}, shape.queries, shape.queries);
  }
  std::int64_t key_length(std::int64_t b, std::int64_t key_beam) const {
    return bound(Op::seq_len_kv, {b, key_beam, 0, 0}, shape.keys, shape.keys);
  }
  // The keys that a query step attends to: none if all of its scores are -inf.
  Columns seen(const HeadRow& query) const {
    const std::int64_t* columns = integers_ + arrays.seen(query);
    return {columns[0], columns[1]};
  }
  HeadRow key_row(const HeadRow& query, std::int64_t j) const {
    return {query.b, shape.key_beam(query.beam), j, query.head};
  }

  // Dropout of a weight, and of an element of o.
  Scalar kept(const HeadRow& query, std::int64_t j, Scalar x) const {
    return after_dropout(Op::dropout_seed, Op::dropout_offset, op.attention_dropout,
                         shape.weight_position(query.b, query.beam, query.head, query.row, j), x);
  }
  Scalar post_kept(const Index& element, Scalar x) const {
    return after_dropout(Op::post_dropout_seed, Op::post_dropout_offset, op.post_dropout,
                         flatten(shape.o_dims(), element), x);
  }
  // Weights and their gradients may be rounded to q's dtype before they are multiplied.
  Scalar rounded(Scalar x) const { return allow_rounding_to(sources[0].dtype(), x); }

  const Op& op;
  const Operands& operands;
  const std::array<View, 3> sources;  // q, k, v before projection
  const MultiHeadShape shape;
  const MultiHeadArrays arrays;
  const Scalar scale;
  const MmaRounding<Scalar> product;  // for the f32 intermediates

 private:
  void project(const View& x, const MultiHeadProjection& projection, const HeadVectors& to) const {
    for_each_row(to, [&](const HeadRow& row) {
      const auto element = [&](std::int64_t c) { return x.load({row.b, row.beam, row.row, c}); };
      for (std::int64_t p = 0; p < to.size; ++p)
        at(to, row)[p] = projection.present ? projected(projection, row.head * to.size + p, element)
                                            : element(p);
    });
  }

  // From scores to o_hi.
  void attend(const HeadRow& query) const {
    Scalar* const scores = at(arrays.scores, query);
    Scalar* const weights = at(arrays.weights, query);
    const Columns columns = this->columns(query);
    SoftmaxRow<Scalar> sum;
    for (std::int64_t j = columns.begin; j < columns.end; ++j) {
      Accumulator<Scalar> score;
      for (std::int64_t p = 0; p < shape.head_size; ++p)
        score.add(product.term(at(arrays.q, query)[p], at(arrays.k, key_row(query, j))[p]));
      scores[j] = scale * product.total(score);
      sum.largest = maximum(sum.largest, scores[j]);
    }
    const Columns seen = sum.is_fully_masked() ? Columns{} : columns;
    integers_[arrays.seen(query)] = seen.begin;
    integers_[arrays.seen(query) + 1] = seen.end;
    Accumulator<Scalar> total;
    for (std::int64_t j = seen.begin; j < seen.end; ++j) {
      const Scalar weight = softmax_weight(scores[j], sum.largest);
      total.add(weight);
      weights[j] = rounded(kept(query, j, weight));
    }
    sum.weights = total.total();
    *at(arrays.stats, query) = sum.stats();
    for (std::int64_t p = 0; p < shape.value_size; ++p) {
      Accumulator<Scalar> o;
      for (std::int64_t j = seen.begin; j < seen.end; ++j)
        o.add(product.term(weights[j], at(arrays.v, key_row(query, j))[p]));
      at(arrays.o, query)[p] = sum.is_fully_masked() ? Scalar(0.0) : product.total(o) / sum.weights;
    }
  }

  // The keys within the lengths and the window.
  Columns columns(const HeadRow& query) const {
    if (query.row >= query_length(query.b, query.beam)) return {};
    const std::int64_t all = key_length(query.b, shape.key_beam(query.beam));
    const Index step = {0, 0, query.row, 0};
    return {bound(Op::window_low, step, 0, all), bound(Op::window_high, step, all, all)};
  }
  // A length or window bound, clamped to [0, extent].
  std::int64_t bound(int input, const Index& index, std::int64_t missing,
                     std::int64_t extent) const {
    if (!operands.has_input(input)) return missing;
    const double given = nominal(operands.input(input).load(index));
    return static_cast<std::int64_t>(std::clamp(given, 0.0, real(extent)));
  }
  Scalar after_dropout(int seed, int offset, double dropout, std::int64_t position,
                       Scalar x) const {
    if (dropout == 0.0) return x;
    const auto integer = [&](int input) {
      return static_cast<std::uint64_t>(operands.has_input(input) ? operands.integer(input) : 0);
    };
    return dropout_keeps(integer(seed), integer(offset), static_cast<std::uint64_t>(position),
                         dropout)
               ? x * Scalar(1.0 / (1.0 - dropout))
               : Scalar(0.0);
  }

  View weights_;
  Scratch<Operands> scratch_;
  Scalar* numbers_;
  std::int64_t* integers_;
};

}  // namespace ashlar::reference
