// y = alpha * transform(x) + beta * z. With f a position in a block:
//   fold:    y[n, (f, c), o] = x[n, c, o * fold + f], with x zero-padded
//   unfold:  y[n, c, o * fold + f] = x[n, (f, c), o], then cropped
#include "reference/evaluate.hpp"

namespace ashlar::reference {

namespace {

// The source index of y[index]; may be outside x. `channels` is the channel count of the unfolded
// tensor.
Index source_of(const TensorTransform& op, std::int64_t channels, const Index& index) {
  Index in = index;
  if (op.unfold) {
    for (int axis = 0; axis < in.rank(); ++axis) in[axis] += per_axis(op.pad_before, axis, 0);
    if (op.fold.empty()) return in;
    std::int64_t f = 0;
    for (int axis = 0; axis < op.fold.rank(); ++axis) {
      f = f * op.fold[axis] + in[axis + 2] % op.fold[axis];
      in[axis + 2] /= op.fold[axis];
    }
    in[1] = f * channels + in[1];
    return in;
  }
  if (!op.fold.empty()) {
    const Index f = unflatten(op.fold, in[1] / channels);
    in[1] %= channels;
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
  const std::int64_t channels =
      op.fold.empty() ? 1 : (op.unfold ? x.dims() : y.dims())[1] / element_count(op.fold);
  for_each(y.dims(), [&](const Index& index) {
    const Index in = source_of(op, channels, index);
    Scalar result = is_inside(x.dims(), in) ? x.load(in) : Scalar(0.0);
    if (op.alpha != 1.0) result = Scalar(op.alpha) * result;
    if (op.beta != 0.0) {
      const Scalar addend = operands.input(TensorTransform::z).load(index);
      result = result + (op.beta == 1.0 ? addend : Scalar(op.beta) * addend);
    }
    y.store(index, result);
  });
}
ASHLAR_REFERENCE(TensorTransform);

}  // namespace ashlar::reference
