// Reductions over every axis in which y has extent 1. An empty reduction yields the neutral
// element.
#include "reference/any_order.hpp"
#include "reference/evaluate.hpp"
#include "reference/uncertainty.hpp"

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
  const auto product_of = [&](auto&& factor) {
    AnyOrder any_order;
    Scalar product = one;
    for_each_in(terms, [&](const Index& index) {
      const Scalar v = factor(x.load(index));
      any_order.add(nominal(v));
      product = product * v;
    });
    return any_order.result(product);
  };
  switch (mode) {
    case ReductionMode::add: return sum_of([](Scalar v) { return v; });
    case ReductionMode::norm1: return sum_of([](Scalar v) { return absolute(v); });
    case ReductionMode::norm2: return sqrt(sum_of([](Scalar v) { return v * v; }));
    case ReductionMode::avg:
      return quotient(operands.compute(), sum_of([](Scalar v) { return v; }),
                      Scalar(real(terms.size())));
    case ReductionMode::mul: return product_of([](Scalar v) { return v; });
    case ReductionMode::mul_no_zeros:
      return product_of([&](Scalar v) { return select(is_nonzero(v), v, one); });
    case ReductionMode::min:
      return fold(Scalar(kInfinity), [](Scalar m, Scalar v) { return minimum(m, v); });
    case ReductionMode::max:
      return fold(Scalar(-kInfinity), [](Scalar m, Scalar v) { return maximum(m, v); });
    case ReductionMode::amax:
      return fold(Scalar(0.0), [](Scalar m, Scalar v) { return maximum(m, absolute(v)); });
  }
  return Scalar(0.0);
}

// The row-major position within `terms` of the element that equals the result: the first of equals,
// or the first NaN; -1 if there are no elements.
template <class View>
typename View::Scalar position_of_result(ReductionMode mode, const View& x, const Box& terms) {
  using Scalar = typename View::Scalar;
  const auto merit = [&](const Index& index) {
    const Scalar v = x.load(index);
    if (mode == ReductionMode::amax) return absolute(v);
    return mode == ReductionMode::min ? -v : v;
  };
  Scalar leader(-kInfinity);
  std::int64_t best = -1, position = 0;
  for_each_in(terms, [&](const Index& index) {
    const Scalar seen = merit(index);
    const bool wins = best < 0 || nominal(seen) > nominal(leader) ||
                      (std::isnan(nominal(seen)) && !std::isnan(nominal(leader)));
    if (wins) {
      leader = seen;
      best = position;
    }
    ++position;
  });
  bool certain = true;
  position = 0;
  for_each_in(terms, [&](const Index& index) {
    if (position++ != best && may_overtake(merit(index), leader)) certain = false;
  });
  return unknown_unless(certain, Scalar(real(best)));
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
    if (operands.has_output(Reduction::index))
      operands.output(Reduction::index).store(index, position_of_result(op.mode, x, terms));
  });
}

ASHLAR_REFERENCE(Reduction);

}  // namespace ashlar::reference
