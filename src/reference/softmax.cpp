// Softmax along one axis: y = exp(x - max) / sum(exp(x - max)), or its logarithm x - max -
// log(sum). stats = max + log(sum).
// A line that is all -inf gives NaN. It is unknown to the oracle: where a planner recognises
// attention, such a row has weights of 0 and stats of -inf.
#include "reference/softmax.hpp"

#include "reference/evaluate.hpp"
#include "reference/uncertainty.hpp"

namespace ashlar::reference {

namespace {

int softmax_axis(const SoftmaxAttributes& op, const Dims& dims) {
  return static_cast<int>(op.axis < 0 ? op.axis + dims.rank() : op.axis);
}

// Calls body(line) for the box of every line along the axis.
template <class Body>
void for_each_line(const Dims& dims, int axis, const Body& body) {
  Dims lines = dims;
  lines[axis] = 1;
  for_each(lines, [&](const Index& index) {
    Box line{index, index};
    for (std::int64_t& end : line.end) ++end;
    line.end[axis] = dims[axis];
    body(line);
  });
}

}  // namespace

template <class Operands>
void evaluate(const SoftmaxForward& op, const Operands& operands) {
  using Scalar = typename Operands::Scalar;
  const auto x = operands.input(SoftmaxForward::x);
  const int axis = softmax_axis(op, x.dims());
  for_each_line(x.dims(), axis, [&](const Box& line) {
    Scalar largest(-kInfinity);
    for_each_in(line, [&](const Index& index) { largest = maximum(largest, x.load(index)); });
    Accumulator<Scalar> weights;
    for_each_in(line,
                [&](const Index& index) { weights.add(softmax_weight(x.load(index), largest)); });
    const Scalar sum = weights.total();
    const bool certain = nominal(largest) != -kInfinity;
    if (operands.has_output(SoftmaxForward::y)) {
      const auto y = operands.output(SoftmaxForward::y);
      for_each_in(line, [&](const Index& index) {
        const Scalar value = x.load(index);
        y.store(index, op.log ? value - largest - log(sum)
                              : unknown_unless(certain, softmax_weight(value, largest) / sum));
      });
    }
    if (operands.has_output(SoftmaxForward::stats))
      operands.output(SoftmaxForward::stats)
          .store(line.begin, unknown_unless(certain, largest + log(sum)));
  });
}

// dx = y * (dy - sum(y * dy));  of the logarithm: dx = dy - exp(y) * sum(dy)
template <class Operands>
void evaluate(const SoftmaxBackward& op, const Operands& operands) {
  using Scalar = typename Operands::Scalar;
  const auto y = operands.input(SoftmaxBackward::y);
  const auto dy = operands.input(SoftmaxBackward::dy);
  const auto dx = operands.output(SoftmaxBackward::dx);
  for_each_line(dx.dims(), softmax_axis(op, dx.dims()), [&](const Box& line) {
    Accumulator<Scalar> terms;
    for_each_in(line, [&](const Index& index) {
      terms.add(op.log ? dy.load(index) : y.load(index) * dy.load(index));
    });
    const Scalar sum = terms.total();
    for_each_in(line, [&](const Index& index) {
      dx.store(index, op.log ? dy.load(index) - exp(y.load(index)) * sum
                             : y.load(index) * (dy.load(index) - sum));
    });
  });
}

ASHLAR_REFERENCE(SoftmaxForward);
ASHLAR_REFERENCE(SoftmaxBackward);

}  // namespace ashlar::reference
