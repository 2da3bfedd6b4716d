// y = alpha * moved(x) + beta * z. With F the elements of a block and f a position in it:
//   fold:    y[n, (c, f), o] = x[n, c, o * fold + f], x with zeros around it
//   unfold:  y[n, c, o * fold + f] = x[n, (c, f), o], and then without its border
#include "reference/evaluate.hpp"

namespace ashlar::reference {

namespace {

// Where y[index] comes from; may lie outside x.
Index source_of(const TensorTransform& op, const Index& index) {
  Index in = index;
  const std::int64_t block = op.fold.empty() ? 1 : element_count(op.fold);
  if (op.unfold) {
    for (int axis = 0; axis < in.rank(); ++axis) in[axis] += per_axis(op.pad_before, axis, 0);
    if (op.fold.empty()) return in;
    std::int64_t f = 0;
    for (int axis = 0; axis < op.fold.rank(); ++axis) {
      f = f * op.fold[axis] + in[axis + 2] % op.fold[axis];
      in[axis + 2] /= op.fold[axis];
    }
    in[1] = in[1] * block + f;
    return in;
  }
  if (!op.fold.empty()) {
    const Index f = unflatten(op.fold, in[1] % block);
    in[1] /= block;
    for (int axis = 0; axis < op.fold.rank(); ++axis)
      in[axis + 2] = in[axis + 2] * op.fold[axis] + f[axis];
  }
  for (int axis = 0; axis < in.rank(); ++axis) in[axis] -= per_axis(op.pad_before, axis, 0);
  return in;
}

bool is_inside(const Dims& dims, const Index& index) {
  for (int axis = 0; axis < dims.rank(); ++axis)
    if (index[axis] < 0 || index[axis] >= dims[axis]) return false;
  return true;
}

}  // namespace

template <class Operands>
void evaluate(const TensorTransform& op, const Operands& operands) {
  using Scalar = typename Operands::Scalar;
  const auto x = operands.input(TensorTransform::x);
  const auto y = operands.output(TensorTransform::y);
  for_each(y.dims(), [&](const Index& index) {
    const Index in = source_of(op, index);
    Scalar result = is_inside(x.dims(), in) ? x.load(in) : Scalar(0.0);
    if (op.alpha != 1.0) result = Scalar(op.alpha) * result;
    if (op.beta != 0.0) {
      const Scalar addend = operands.input(TensorTransform::z).load(index);
      result = result + (op.beta == 1.0 ? addend : Scalar(op.beta) * addend);
    }
    y.store(index, result);
  });
}
ASHLAR_REFERENCE_INSTANTIATE(TensorTransform);

}  // namespace ashlar::reference
