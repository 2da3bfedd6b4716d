// Reductions over every axis in which y has extent 1. Over nothing they give the neutral element.
#include "reference/evaluate.hpp"

namespace ashlar::reference {

namespace {

template <class Operands, class View>
typename View::Scalar reduce(ReductionMode mode, const Operands& operands, const View& x,
                             const Box& terms) {
  using Scalar = typename View::Scalar;
  const auto sum_of = [&](auto&& term) {
    Accumulator<Scalar> sum;
    for_each_in(terms, [&](const Index& index) { sum.add(term(x.load(index))); });
    return sum.total();
  };
  const auto fold = [&](Scalar start, auto&& step) {
    for_each_in(terms, [&](const Index& index) { start = step(start, x.load(index)); });
    return start;
  };
  const Scalar one(1.0);
  switch (mode) {
    case ReductionMode::add: return sum_of([](Scalar v) { return v; });
    case ReductionMode::norm1: return sum_of([](Scalar v) { return absolute(v); });
    case ReductionMode::norm2: return sqrt(sum_of([](Scalar v) { return v * v; }));
    case ReductionMode::avg:
      return quotient(operands.compute(), sum_of([](Scalar v) { return v; }),
                      Scalar(real(terms.size())));
    case ReductionMode::mul: return fold(one, [](Scalar p, Scalar v) { return p * v; });
    case ReductionMode::mul_no_zeros:
      return fold(one, [&](Scalar p, Scalar v) { return p * select(is_nonzero(v), v, one); });
    case ReductionMode::min:
      return fold(Scalar(kInfinity), [](Scalar m, Scalar v) { return minimum(m, v); });
    case ReductionMode::max:
      return fold(Scalar(-kInfinity), [](Scalar m, Scalar v) { return maximum(m, v); });
    case ReductionMode::amax:
      return fold(Scalar(0.0), [](Scalar m, Scalar v) { return maximum(m, absolute(v)); });
  }
  return Scalar(0.0);
}

}  // namespace

template <class Operands>
void evaluate(const Reduction& op, const Operands& operands) {
  const auto x = operands.input(Reduction::x);
  const auto y = operands.output(Reduction::y);
  for_each(y.dims(), [&](const Index& index) {
    Box terms = Box::all(x.dims());
    for (int axis = 0; axis < index.rank(); ++axis)
      if (y.dims()[axis] != 1) {
        terms.begin[axis] = index[axis];
        terms.end[axis] = index[axis] + 1;
      }
    y.store(index, reduce(op.mode, operands, x, terms));
  });
}

ASHLAR_REFERENCE_INSTANTIATE(Reduction);

}  // namespace ashlar::reference
