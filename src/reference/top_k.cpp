// The k largest or smallest elements along one axis, by a stable sort of each line.
#include <algorithm>

#include "reference/evaluate.hpp"
#include "reference/uncertainty.hpp"

namespace ashlar::reference {

namespace {

// Elements of one line, for both scalar types.
inline double error_of(double) { return 0.0; }
template <Arithmetic A>
double error_of(Approx<A> x) {
  return x.error;
}
inline double with_error_of(double value, double) { return value; }
template <Arithmetic A>
Approx<A> with_error_of(Approx<A> value, double error) {
  return Approx<A>::with_error(value.value, std::isfinite(value.value) ? error : value.error);
}

int top_k_axis(const TopK& op, const Dims& dims) {
  return static_cast<int>(op.axis < 0 ? op.axis + dims.rank() : op.axis);
}

// The order of a line's positions; the first place that an element, or one behind it, may take.
ScratchNeed top_k_need(const TopK& op, const InputDims& dims) {
  const Dims x = dims(TopK::x);
  const std::int64_t extent = x[top_k_axis(op, x)];
  return {.numbers = extent, .integers = extent};
}

}  // namespace

// Errors may exchange elements that are closer than their errors. Such elements form clusters, runs
// of the sorted line: within a cluster of several elements with errors, positions are unknown and a
// value is that of the nominal order up to the largest error. NaN is the largest number.
template <class Operands>
void evaluate(const TopK& op, const Operands& operands) {
  using Scalar = typename Operands::Scalar;
  const auto x = operands.input(TopK::x);
  const auto values = operands.output(TopK::values);
  const int axis = top_k_axis(op, x.dims());
  const std::int64_t extent = x.dims()[axis], k = op.k == 0 ? extent : op.k;
  const auto dims_of = [&](int) { return x.dims(); };
  Scratch<Operands> scratch(operands, top_k_need(op, dims_of));
  std::int64_t* order = scratch.integers();
  Scalar* first_place = scratch.numbers();
  Dims lines = x.dims();
  lines[axis] = 1;
  for_each_in(Box::all(lines), [&](const Index& line) {
    const auto load = [&](std::int64_t i) {
      Index index = line;
      index[axis] = i;
      return x.load(index);
    };
    for (std::int64_t i = 0; i < extent; ++i) order[i] = i;
    std::sort(order, order + extent, [&](std::int64_t i, std::int64_t j) {
      const double a = nominal(load(op.largest ? i : j)), b = nominal(load(op.largest ? j : i));
      if (std::isnan(a) != std::isnan(b)) return std::isnan(a);
      if (a != b && !std::isnan(a)) return a > b;
      return i < j;
    });
    // The place of an element `errors` errors away: ascending in the sorted order.
    const auto place = [&](std::int64_t i, double errors) {
      const Scalar element = load(order[i]);
      const double value = nominal(element);
      const double number = std::isnan(value) ? kInfinity : value;
      return (op.largest ? -number : number) + errors * error_of(element);
    };
    bool known = true;
    for (std::int64_t i = 0; i < extent; ++i) known = known && error_of(load(i)) < kInfinity;
    double least = kInfinity;
    for (std::int64_t i = extent; i-- > 0;) {
      least = std::min(least, known ? place(i, -1.0) : 0.0);
      first_place[i] = with_error_of(Scalar(least), 0.0);
    }
    for (std::int64_t begin = 0, end = 0; begin < k; begin = end) {
      double error = 0.0, furthest = -kInfinity;  // the last place of the cluster's elements
      do {
        error = std::max(error, error_of(load(order[end])));
        if (known) furthest = std::max(furthest, place(end, 1.0));
        ++end;
      } while (end < extent && !(nominal(first_place[end]) > furthest));
      const bool certain = known && (end - begin == 1 || error == 0.0);
      for (std::int64_t j = begin; j < std::min(end, k); ++j) {
        Index to = line;
        to[axis] = j;
        values.store(to, unknown_unless(known, with_error_of(load(order[j]), error)));
        if (operands.has_output(TopK::index))
          operands.output(TopK::index).store(to, unknown_unless(certain, Scalar(real(order[j]))));
      }
    }
  });
}

ASHLAR_REFERENCE_WITH_SCRATCH(TopK, top_k_need);

}  // namespace ashlar::reference
