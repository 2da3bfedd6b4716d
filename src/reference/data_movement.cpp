// Reshape, transpose, slice and concat.
#include "reference/evaluate.hpp"

namespace ashlar::reference {

template <class Operands>
void evaluate(const Reshape&, const Operands& operands) {
  const auto x = operands.input(Reshape::x);
  const auto y = operands.output(Reshape::y);
  for_each(y.dims(), [&](const Index& index) {
    y.store(index, x.load(unflatten(x.dims(), flatten(y.dims(), index))));
  });
}

template <class Operands>
void evaluate(const Transpose& op, const Operands& operands) {
  const auto x = operands.input(Transpose::x);
  const auto y = operands.output(Transpose::y);
  for_each(y.dims(), [&](const Index& index) {
    Index from = index;
    for (int axis = 0; axis < index.rank(); ++axis)
      from[static_cast<int>(op.permutation[axis])] = index[axis];
    y.store(index, x.load(from));
  });
}

template <class Operands>
void evaluate(const Slice& op, const Operands& operands) {
  const auto x = operands.input(Slice::x);
  const auto y = operands.output(Slice::y);
  for_each(y.dims(), [&](const Index& index) {
    Index from = index;
    for (int axis = 0; axis < index.rank(); ++axis)
      from[axis] = per_axis(op.start, axis, 0) + index[axis] * per_axis(op.step, axis, 1);
    y.store(index, x.load(from));
  });
}

template <class Operands>
void evaluate(const Concat& op, const Operands& operands) {
  const auto y = operands.output(Concat::y);
  const int axis = static_cast<int>(op.axis < 0 ? op.axis + y.dims().rank() : op.axis);
  std::int64_t begin = 0;
  for (int i = 0; i < operands.input_count(); ++i) {
    const auto x = operands.input(i);
    for_each(x.dims(), [&](const Index& index) {
      Index to = index;
      to[axis] += begin;
      y.store(to, x.load(index));
    });
    begin += x.dims()[axis];
  }
}

ASHLAR_REFERENCE(Reshape);
ASHLAR_REFERENCE(Transpose);
ASHLAR_REFERENCE(Slice);
ASHLAR_REFERENCE(Concat);

}  // namespace ashlar::reference
