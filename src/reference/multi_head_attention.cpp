// Multi-head attention, forward.
#include "reference/multi_head_attention.hpp"

namespace ashlar::reference {

template <class Operands>
void evaluate(const MultiHeadAttentionForward& op, const Operands& operands) {
  using Op = MultiHeadAttentionForward;
  using Scalar = typename Operands::Scalar;
  const MultiHeadProblem<Op, Operands> problem(op, operands);
  const MultiHeadProjection& projection = problem.shape[MultiHeadPart::output];
  const auto o = operands.output(Op::o);
  for_each(problem.shape.o_dims(), [&](const Index& at) {
    if (at[2] >= problem.query_length(at[0], at[1])) return o.store(at, Scalar(0.0));
    const Scalar* heads = problem.at(problem.arrays.o, {at[0], at[1], at[2]});
    const auto element = [&](std::int64_t column) { return heads[column]; };
    const Scalar result = problem.post_kept(
        at, projection.present ? problem.projected(projection, at[3], element) : heads[at[3]]);
    o.store(at, operands.has_input(Op::residual) ? result + operands.input(Op::residual).load(at)
                                                 : result);
  });
}

ASHLAR_REFERENCE_WITH_SCRATCH(MultiHeadAttentionForward, multi_head_need);

}  // namespace ashlar::reference
