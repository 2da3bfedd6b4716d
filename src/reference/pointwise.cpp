// Pointwise operations: y = op(alpha1 * x, alpha2 * b); gradients: dy * f'(x) with dy first.
#include "reference/pointwise.hpp"

namespace ashlar::reference {

template <class Operands>
void evaluate(const Pointwise& op, const Operands& operands) {
  using Scalar = typename Operands::Scalar;
  const auto y = operands.output(Pointwise::y);
  const int axis = static_cast<int>(op.axis < 0 ? op.axis + y.dims().rank() : op.axis);
  const auto x = operands.input(Pointwise::x);
  const bool has_b = operands.has_input(Pointwise::b),
             has_predicate = operands.has_input(Pointwise::predicate);
  const auto b = operands.input(has_b ? Pointwise::b : Pointwise::x);
  const auto predicate = operands.input(has_predicate ? Pointwise::predicate : Pointwise::x);
  const auto scaled = [](double alpha, Scalar value) {
    return alpha == 1.0 ? value : Scalar(alpha) * value;
  };

  for_each(y.dims(), [&](const Index& index) {
    y.store(index, apply_pointwise(op, operands.compute(), scaled(op.alpha1, x.load(index)),
                                   has_b ? scaled(op.alpha2, b.load(index)) : Scalar(0.0),
                                   has_predicate ? predicate.load(index) : Scalar(0.0),
                                   op.mode == PointwiseMode::gen_index ? index[axis] : 0));
  });
}

ASHLAR_REFERENCE(Pointwise);

}  // namespace ashlar::reference
