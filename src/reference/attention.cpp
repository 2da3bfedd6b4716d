// Scaled dot-product attention, per batch b and head h:
//   s_ij = modifier(cap(scale * sum_d q_id k_jd)) + bias_ij + slope_h (j - i)
//                                                for the columns j that row i sees
//   p_ij = exp(s_ij - stats_i), stats_i = log(exp(sink_h) + sum_j exp(s_ij))
//   o_i  = sum_j keep_ij p_ij v_j                keep_ij: 0 or 1 / (1 - dropout)
// fp8: the matmul operands are q, k, v times their descale_ and p as fp8(p * scale_s) * descale_s.
#include "reference/attention.hpp"

#include "reference/shared_maximum.hpp"
#include "reference/uncertainty.hpp"

namespace ashlar::reference {

template <class Operands>
void evaluate(const AttentionForward& op, const Operands& operands) {
  using Forward = AttentionForward;
  using Scalar = typename Operands::Scalar;
  const AttentionProblem<Forward, Operands> problem(op, operands);
  const auto o = operands.output(Forward::o);
  const DType operand_dtype = problem.q().dtype();
  // fp8 weights are rounded after the division by their sum, because the result depends on it.
  const bool divides_first = is_fp8(operand_dtype);
  const MmaRounding<Scalar> product(operands, operand_dtype, problem.v().dtype());
  SharedMaximum<Scalar> amax_s, amax_o;

  for_each({o.dims()[0], o.dims()[1], o.dims()[2]}, [&](const Index& row) {
    const std::int64_t b = row[0], h = row[1], i = row[2];
    const SoftmaxRow<Scalar> sum = problem.row_sum(b, h, i);
    const auto weight = [&](const ScoreIndex& at) {
      return problem.kept(at, softmax_weight(problem.score(at), sum.largest));
    };
    Scalar largest_s(0.0), largest_o(0.0);
    for_each_block<Scalar>(o.dims()[3], [&](RowAccumulator<Scalar>& totals) {
      if (!sum.is_fully_masked())
        problem.for_each_visible(b, h, i, [&](const ScoreIndex& at) {
          const Scalar p = divides_first ? weight(at) / sum.weights : weight(at);
          totals.add(product, as_operand(operand_dtype, problem.times(p, {Forward::scale_s})),
                     problem.v(), problem.v_row(at));
        });
      totals.for_each(product, {b, h, i, 0}, [&](const Index& at, Scalar total) {
        if (sum.is_fully_masked()) return o.store(at, Scalar(0.0));
        // A row that sees no key has no term to divide first; a sink of NaN makes its sum NaN,
        // which an engine may still divide by.
        const Scalar quotient = divides_first
                                    ? unknown_unless(!std::isnan(nominal(sum.weights)), total)
                                    : total / sum.weights;
        const Scalar value = problem.times(quotient, {Forward::descale_s, Forward::descale_v});
        largest_o = maximum(largest_o, absolute(value));
        o.store(at, problem.times(value, {Forward::scale_o}));
      });
    });
    if (operands.has_output(Forward::amax_s) && !sum.is_fully_masked())
      problem.for_each_visible(b, h, i, [&](const ScoreIndex& at) {
        largest_s = maximum(largest_s, weight(at) / sum.weights);
      });
    amax_s.add(largest_s);
    amax_o.add(largest_o);
    const auto store = [&](int slot, Scalar value) {
      if (operands.has_output(slot)) operands.output(slot).store({b, h, i, 0}, value);
    };
    store(Forward::stats, sum.stats());
    store(Forward::max, sum.largest);
    store(Forward::sum_exp, sum.weights);
  });
  if (operands.has_output(Forward::amax_s))
    operands.output(Forward::amax_s).store({0, 0, 0, 0}, amax_s.largest());
  if (operands.has_output(Forward::amax_o))
    operands.output(Forward::amax_o).store({0, 0, 0, 0}, amax_o.largest());
  problem.dump_rng();
}

ASHLAR_REFERENCE(AttentionForward);

}  // namespace ashlar::reference
