// Block-scaled quantisation and dequantisation.
#include "base/block_scale.hpp"

#include "graph/block_scale_shape.hpp"
#include "reference/evaluate.hpp"

namespace ashlar::reference {

namespace {

double block_scale(DType type, double amax, double largest) {
  return scale_for(type, amax, largest);
}
// Exact, and monotonic in amax.
template <Arithmetic A>
Approx<A> block_scale(DType type, Approx<A> amax, double largest) {
  const double value = scale_for(type, amax.value, largest);
  if (amax.error == 0.0) return Approx<A>::with_error(value, 0.0);
  if (amax.unknown()) return Approx<A>::with_error(value, kInfinity);
  const double low = scale_for(type, std::max(amax.value - amax.error, 0.0), largest);
  const double high = scale_for(type, amax.value + amax.error, largest);
  return Approx<A>::with_error(value, std::max(distance(value, low), distance(high, value)));
}

bool is_certain(double) { return true; }
template <Arithmetic A>
bool is_certain(Approx<A> x) {
  return x.error == 0.0;
}

// x / scale; x if the scale is 0, as for a block of zeros. Division by a power of two is exact.
template <class Scalar>
Scalar scaled_down(Scalar x, Scalar scale) {
  if (!is_certain(scale)) return x / scale;
  if (nominal(scale) == 0.0) return x;
  int exponent = 0;
  const bool power_of_two = std::frexp(nominal(scale), &exponent) == 0.5;
  return power_of_two ? x * Scalar(1.0 / nominal(scale)) : x / scale;
}

Box block_box(const Index& block, const Dims& size, const Dims& dims) {
  Box box{block, block};
  for (int axis = 0; axis < dims.rank(); ++axis) {
    box.begin[axis] = block[axis] * size[axis];
    box.end[axis] = std::min(box.begin[axis] + size[axis], dims[axis]);
  }
  return box;
}

}  // namespace

template <class Operands>
void evaluate(const BlockScaleQuantize& op, const Operands& operands) {
  using Scalar = typename Operands::Scalar;
  const auto x = operands.input(BlockScaleQuantize::x);
  const auto y = operands.output(BlockScaleQuantize::y);
  const auto scale = operands.output(BlockScaleQuantize::scale);
  const BlockScaleShape shape(x.dims(), op);
  const double largest = largest_value(y.dtype());

  if (shape.tiled())  // zero the padding of the tiles
    for_each(scale.dims(), [&](const Index& index) { scale.store(index, Scalar(0.0)); });
  for_each(shape.blocks(), [&](const Index& block) {
    const Box box = block_box(block, op.block_size, x.dims());
    Scalar amax(0.0);
    for_each_in(box, [&](const Index& index) { amax = maximum(amax, absolute(x.load(index))); });
    const Scalar factor = block_scale(scale.dtype(), amax, largest);
    scale.store(shape.place(block), factor);
    for_each_in(box,
                [&](const Index& index) { y.store(index, scaled_down(x.load(index), factor)); });
  });
}

template <class Operands>
void evaluate(const BlockScaleDequantize& op, const Operands& operands) {
  using Scalar = typename Operands::Scalar;
  const auto x = operands.input(BlockScaleDequantize::x);
  const auto scale = operands.input(BlockScaleDequantize::scale);
  const auto y = operands.output(BlockScaleDequantize::y);
  const BlockScaleShape shape(x.dims(), op);
  const bool shifted = operands.has_input(BlockScaleDequantize::zero_point);
  const auto zero =
      operands.input(shifted ? BlockScaleDequantize::zero_point : BlockScaleDequantize::scale);
  for_each(y.dims(), [&](const Index& index) {
    Index block = index;
    for (int axis = 0; axis < index.rank(); ++axis) block[axis] /= op.block_size[axis];
    Scalar number = x.load(index);
    if (shifted) number = number - zero.load(block);
    const Scalar product = number * scale.load(shape.place(block));
    y.store(index, op.negative_scale ? -product : product);
  });
}

ASHLAR_REFERENCE(BlockScaleQuantize);
ASHLAR_REFERENCE(BlockScaleDequantize);

}  // namespace ashlar::reference
