// Gradients of multi-head attention. With do'_i = keep_i do_i, the gradient before post dropout:
//   do_hi = Wo_h^T do'_i                       (the slice of do'_i without a projection)
//   delta_i = sum_p do_hip o_hip,  dp_ij = keep_ij sum_p do_hip v^_jp
//   ds_ij = p_ij (dp_ij - delta_i)
//   dq^_i = scale sum_j ds_ij k^_j,  dk^_j = scale sum_i ds_ij q^_i
//   dv^_j = sum_i keep_ij p_ij do_hi
//   dq_i = sum_h Wq_h^T dq^_hi,  dWq_h = sum_i dq^_hi q_i^T,  dbq_h = sum_i dq^_hi; also for k, v
//   dWo = sum_i do'_i [o_1i, ..., o_Hi]^T,  dbo = sum_i do'_i
// Gradients of keys shared by several beams are sums over them.
#include "reference/multi_head_attention.hpp"

namespace ashlar::reference {

namespace {

// Computes everything up to dq^, dk^ and dv^.
template <class Op, class Operands>
class MultiHeadGradients : public MultiHeadProblem<Op, Operands> {
 public:
  using Base = MultiHeadProblem<Op, Operands>;
  using Scalar = typename Operands::Scalar;
  using Base::at, Base::arrays, Base::shape, Base::scale, Base::product, Base::seen, Base::key_row,
      Base::kept, Base::rounded, Base::for_each_row;

  MultiHeadGradients(const Op& attention, const Operands& given) : Base(attention, given) {
    const auto d_o = given.input(Op::d_o);
    for_each_row(arrays.d_output, [&](const HeadRow& row) {
      const bool exists = row.row < this->query_length(row.b, row.beam);
      for (std::int64_t c = 0; c < shape.o_size; ++c) {
        const Index element = {row.b, row.beam, row.row, c};
        at(arrays.d_output, row)[c] =
            exists ? this->post_kept(element, d_o.load(element)) : Scalar(0.0);
      }
    });
    for_each_row(arrays.d_o, [&](const HeadRow& query) {
      const MultiHeadProjection& projection = shape[MultiHeadPart::output];
      const Scalar* d_output = at(arrays.d_output, {query.b, query.beam, query.row});
      for (std::int64_t p = 0; p < shape.value_size; ++p) {
        const std::int64_t column = query.head * shape.value_size + p;
        at(arrays.d_o, query)[p] = projection.present
                                       ? this->projected_back(projection, column, d_output)
                                       : d_output[column];
      }
    });
    for_each_row(arrays.ds, [&](const HeadRow& query) { score_gradients(query); });
    for_each_row(arrays.dq, [&](const HeadRow& query) {
      const Columns columns = seen(query);
      for (std::int64_t p = 0; p < shape.head_size; ++p) {
        Accumulator<Scalar> sum;
        for (std::int64_t j = columns.begin; j < columns.end; ++j)
          sum.add(product.term(at(arrays.ds, query)[j], at(arrays.k, key_row(query, j))[p]));
        at(arrays.dq, query)[p] = scale * product.total(sum);
      }
    });
    for_each_row(arrays.dk, [&](const HeadRow& key) {
      for (std::int64_t p = 0; p < shape.head_size; ++p)
        at(arrays.dk, key)[p] = scale * sum_over_queries(key, arrays.ds, arrays.q, p);
      for (std::int64_t p = 0; p < shape.value_size; ++p)
        at(arrays.dv, key)[p] = sum_over_queries(key, arrays.p, arrays.d_o, p);
    });
  }

  // dq^, dk^, dv^.
  std::array<HeadVectors, 3> results() const { return {arrays.dq, arrays.dk, arrays.dv}; }

 private:
  // Row i of ds_ij and of keep_ij p_ij.
  void score_gradients(const HeadRow& query) const {
    const Scalar* d_o = at(arrays.d_o, query);
    const Columns columns = seen(query);
    Accumulator<Scalar> delta;
    for (std::int64_t p = 0; p < shape.value_size; ++p) delta.add(d_o[p] * at(arrays.o, query)[p]);
    for (std::int64_t j = columns.begin; j < columns.end; ++j) {
      Accumulator<Scalar> dp;
      for (std::int64_t p = 0; p < shape.value_size; ++p)
        dp.add(product.term(d_o[p], at(arrays.v, key_row(query, j))[p]));
      const Scalar weight = softmax_weight(at(arrays.scores, query)[j], *at(arrays.stats, query));
      at(arrays.ds, query)[j] =
          rounded(weight * (kept(query, j, product.total(dp)) - delta.total()));
      at(arrays.p, query)[j] = rounded(kept(query, j, weight));
    }
  }

  // sum_i factor_ij x_ip over the query steps that attend to key j.
  Scalar sum_over_queries(const HeadRow& key, const HeadVectors& factor, const HeadVectors& x,
                          std::int64_t p) const {
    Accumulator<Scalar> sum;
    for (std::int64_t beam = 0; beam < shape.beams; ++beam)
      for (std::int64_t i = 0; i < shape.queries; ++i) {
        const HeadRow query{key.b, beam, i, key.head};
        if (shape.key_beam(beam) == key.beam && seen(query).contains(key.row))
          sum.add(product.term(at(factor, query)[key.row], at(x, query)[p]));
      }
    return product.total(sum);
  }
};

}  // namespace

template <class Operands>
void evaluate(const MultiHeadAttentionBackwardData& op, const Operands& operands) {
  using Op = MultiHeadAttentionBackwardData;
  using Scalar = typename Operands::Scalar;
  const MultiHeadGradients<Op, Operands> problem(op, operands);
  for (int part : {Op::dq, Op::dk, Op::dv}) {
    const MultiHeadProjection& projection =
        problem.shape.projections[static_cast<std::size_t>(part)];
    const HeadVectors gradient = problem.results()[static_cast<std::size_t>(part)];
    const auto result = operands.output(part);
    for_each(result.dims(), [&](const Index& at) {
      const Scalar* heads = problem.at(gradient, {at[0], at[1], at[2]});
      Accumulator<Scalar> unprojected;
      for (std::int64_t head = 0; !projection.present && head < gradient.heads; ++head)
        unprojected.add(heads[head * gradient.size + at[3]]);
      result.store(at, projection.present ? problem.projected_back(projection, at[3], heads)
                                          : unprojected.total());
    });
  }
}

template <class Operands>
void evaluate(const MultiHeadAttentionBackwardWeights& op, const Operands& operands) {
  using Op = MultiHeadAttentionBackwardWeights;
  using Scalar = typename Operands::Scalar;
  const MultiHeadGradients<Op, Operands> problem(op, operands);
  const MultiHeadShape& shape = problem.shape;
  const auto dweights = operands.output(Op::dweights);
  // One weight: the sum of term(step) over all steps within the lengths. Steps past the lengths
  // have no gradient and undefined contents.
  const auto store_sum = [&](std::int64_t element, bool of_keys, const auto& term) {
    Accumulator<Scalar> sum;
    for (std::int64_t b = 0; b < shape.batch; ++b)
      for (std::int64_t beam = 0; beam < (of_keys ? shape.key_beams : shape.beams); ++beam) {
        const std::int64_t steps =
            of_keys ? problem.key_length(b, beam) : problem.query_length(b, beam);
        for (std::int64_t row = 0; row < steps; ++row) sum.add(term(HeadRow{b, beam, row}));
      }
    const Scalar total = problem.product.total(sum);
    dweights.store({element}, operands.has_input(Op::previous)
                                  ? total + operands.input(Op::previous).load({element})
                                  : total);
  };
  for (MultiHeadPart part : kMultiHeadParts) {
    const MultiHeadProjection& w = shape[part];
    if (!w.present) continue;
    const auto number = static_cast<std::size_t>(part);
    const bool of_output = part == MultiHeadPart::output;
    const bool of_keys = part == MultiHeadPart::key || part == MultiHeadPart::value;
    const HeadVectors left = of_output ? problem.arrays.d_output : problem.results()[number];
    const auto right = [&](const HeadRow& step, std::int64_t c) {
      return of_output ? problem.at(problem.arrays.o, step)[c]
                       : problem.sources[number].load({step.b, step.beam, step.row, c});
    };
    for_each({w.rows, w.columns}, [&](const Index& at) {
      store_sum(w.matrix + at[0] * w.columns + at[1], of_keys, [&](const HeadRow& step) {
        return problem.product.term(problem.at(left, step)[at[0]], right(step, at[1]));
      });
    });
    for_each({shape.has_biases ? w.rows : 0}, [&](const Index& at) {
      store_sum(w.bias + at[0], of_keys,
                [&](const HeadRow& step) { return problem.at(left, step)[at[0]]; });
    });
  }
}

ASHLAR_REFERENCE_WITH_SCRATCH(MultiHeadAttentionBackwardData, multi_head_need);
ASHLAR_REFERENCE_WITH_SCRATCH(MultiHeadAttentionBackwardWeights, multi_head_need);

}  // namespace ashlar::reference
