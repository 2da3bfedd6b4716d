// Random numbers, dropout and block scales.
#include "base/element.hpp"
#include "cuda/engines/generic/operations.hpp"
#include "graph/block_scale_shape.hpp"

namespace ashlar::cuda {

void describe(const Rng& op, GenericKernel& kernel) {
  kernel.file("random_state");
  kernel.file("rng");
  kernel.constant("kDistribution", static_cast<int>(op.distribution));
  kernel.number("seed", op.seed);
  kernel.number("offset", op.offset);
  kernel.real("probability", op.probability);
  kernel.real("minimum", op.minimum);
  kernel.real("maximum", op.maximum);
  kernel.real("mean", op.mean);
  kernel.real("deviation", op.standard_deviation);
  kernel.pass_over_output(Rng::y);
}

namespace {

void describe_dropout(const DropoutAttributes& op, GenericKernel& kernel) {
  kernel.file("random_state");
  kernel.number("seed", op.seed);
  kernel.number("offset", op.offset);
  kernel.real("kept", 1.0 - op.probability);
  kernel.real("scale", 1.0 / (1.0 - op.probability));
}

}  // namespace

void describe(const DropoutForward& op, GenericKernel& kernel) {
  describe_dropout(op, kernel);
  kernel.file("dropout_forward");
  const std::int64_t elements = element_count(kernel.in(DropoutForward::x).dims);
  kernel.pass(elements);
  if (kernel.has_out(DropoutForward::next_offset)) kernel.pass({.units = 1, .begin = elements});
}

void describe(const DropoutBackward& op, GenericKernel& kernel) {
  describe_dropout(op, kernel);
  kernel.file("dropout_backward");
  kernel.pass_over_output(DropoutBackward::dx);
}

namespace {

void describe_blocks(const BlockScaleAttributes& op, GenericKernel& kernel,
                     const BlockScaleShape& shape) {
  kernel.file("block_scale");
  kernel.constant("kTiled", shape.tiled());
  kernel.constant("kRowAxis", shape.row_axis());
  kernel.constant("kColumnAxis", shape.column_axis());
  kernel.numbers("block_size", op.block_size);
  kernel.numbers("blocks", shape.blocks());
}

}  // namespace

void describe(const BlockScaleQuantize& op, GenericKernel& kernel) {
  using Op = BlockScaleQuantize;
  const BlockScaleShape shape(kernel.in(Op::x).dims, op);
  const View& scale = kernel.out(Op::scale);
  describe_blocks(op, kernel, shape);
  kernel.file("block_scale_quantize");
  kernel.element_type("Scale", scale.dtype);
  kernel.real("largest", largest_value(kernel.out(Op::y).dtype));
  kernel.real("largest_scale", largest_value(scale.dtype));
  kernel.pass(shape.tiled() ? element_count(scale.dims) : 0);
  kernel.pass(element_count(shape.blocks()));
}

void describe(const BlockScaleDequantize& op, GenericKernel& kernel) {
  using Op = BlockScaleDequantize;
  describe_blocks(op, kernel, BlockScaleShape(kernel.in(Op::x).dims, op));
  kernel.file("block_scale_dequantize");
  kernel.constant("kNegative", op.negative_scale);
  kernel.pass_over_output(Op::y);
}

}  // namespace ashlar::cuda
