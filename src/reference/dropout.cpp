// y = x * (1 / (1 - probability)) where a Bernoulli stream of 1 - probability gives 1, else 0.
#include "base/dropout.hpp"

#include "reference/evaluate.hpp"

namespace ashlar::reference {

namespace {

template <class Op, class Operands>
std::uint64_t state(const Operands& operands, int slot, std::int64_t attribute) {
  return static_cast<std::uint64_t>(operands.has_input(slot) ? operands.integer(slot) : attribute);
}

// An integer that is not a result of arithmetic in the compute type.
inline double exactly(double, double value) { return value; }
template <Arithmetic A>
Approx<A> exactly(Approx<A>, double value) {
  return Approx<A>::with_error(value, 0.0);
}

}  // namespace

template <class Operands>
void evaluate(const DropoutForward& op, const Operands& operands) {
  using Op = DropoutForward;
  using Scalar = typename Operands::Scalar;
  const auto x = operands.input(Op::x);
  const std::uint64_t seed = state<Op>(operands, Op::seed_tensor, op.seed);
  const std::uint64_t offset = state<Op>(operands, Op::offset_tensor, op.offset);
  for_each(x.dims(), [&](const Index& at) {
    const auto i = static_cast<std::uint64_t>(flatten(x.dims(), at));
    const bool kept = dropout_keeps(seed, offset, i, op.probability);
    if (operands.has_output(Op::y))
      operands.output(Op::y).store(
          at, kept ? x.load(at) * Scalar(1.0 / (1.0 - op.probability)) : Scalar(0.0));
    if (operands.has_output(Op::mask))
      operands.output(Op::mask).store(at, Scalar(kept ? 1.0 : 0.0));
  });
  if (!operands.has_output(Op::next_offset)) return;
  const auto next = operands.output(Op::next_offset);
  const auto count = static_cast<std::uint64_t>(element_count(x.dims()));
  const auto end = static_cast<std::int64_t>(offset + (count + 3) / 4);
  next.store(Dims::filled(next.dims().rank(), 0), exactly(Scalar{}, static_cast<double>(end)));
}

template <class Operands>
void evaluate(const DropoutBackward& op, const Operands& operands) {
  using Op = DropoutBackward;
  using Scalar = typename Operands::Scalar;
  const auto dy = operands.input(Op::dy);
  const auto dx = operands.output(Op::dx);
  const std::uint64_t seed = state<Op>(operands, Op::seed_tensor, op.seed);
  const std::uint64_t offset = state<Op>(operands, Op::offset_tensor, op.offset);
  for_each(dy.dims(), [&](const Index& at) {
    const auto i = static_cast<std::uint64_t>(flatten(dy.dims(), at));
    const Scalar kept = operands.has_input(Op::mask)
                            ? is_nonzero(operands.input(Op::mask).load(at))
                            : Scalar(dropout_keeps(seed, offset, i, op.probability) ? 1.0 : 0.0);
    dx.store(at, select(kept, dy.load(at) * Scalar(1.0 / (1.0 - op.probability)), Scalar(0.0)));
  });
}

ASHLAR_REFERENCE(DropoutForward);
ASHLAR_REFERENCE(DropoutBackward);

}  // namespace ashlar::reference
