#include "backend/translate/translation.hpp"

namespace ashlar::cudnn {

namespace {

DType math_of(const Translation& translation, const Record& operation,
              cudnnBackendAttributeName_t attribute, TensorId x) {
  const DType requested = compute_of(
      translation, static_cast<cudnnDataType_t>(operation.integer_or(attribute, CUDNN_DATA_FLOAT)),
      std::array{x});
  return is_floating(requested) ? requested : f32;
}

ScaleLayout layout_of(const TensorFacts& scale) {
  return scale.reordering == CUDNN_TENSOR_REORDERING_F8_128x4 ? ScaleLayout::f8_128x4
                                                              : ScaleLayout::linear;
}

// The axis along which `size` elements share a scale: the last axis on which the scale tensor is
// smaller by that factor (up to the padding of its tiles).
std::int64_t blocked_axis(const Dims& x, const Dims& scale, std::int64_t size) {
  for (int axis = x.rank() - 1; axis >= 0 && scale.rank() == x.rank(); --axis) {
    const std::int64_t blocks = (x[axis] + size - 1) / size;
    if (scale[axis] < x[axis] && scale[axis] >= blocks) return axis;
  }
  return x.rank() - 1;
}

}  // namespace

void translate_block_scale_quantize(Translation& translation, const Record& operation) {
  constexpr auto kX = CUDNN_ATTR_OPERATION_BLOCK_SCALE_QUANTIZE_XDESC,
                 kY = CUDNN_ATTR_OPERATION_BLOCK_SCALE_QUANTIZE_YDESC,
                 kScale = CUDNN_ATTR_OPERATION_BLOCK_SCALE_QUANTIZE_SCALE_DESC;
  const TensorId x = translation.operand(operation, kX);
  const TensorFacts scale = translation.facts(operation, kScale);
  BlockScaleQuantize op;
  const std::int64_t size =
      operation.integer_or(CUDNN_ATTR_OPERATION_BLOCK_SCALE_QUANTIZE_BLOCK_SIZE, 32);
  op.block_size = {size};
  op.axis = blocked_axis(translation.dims(x), scale.dims, size);
  op.scale_layout = layout_of(scale);
  const DType math =
      math_of(translation, operation, CUDNN_ATTR_OPERATION_BLOCK_SCALE_QUANTIZE_MATH_PREC, x);
  const TensorId y = translation.result(operation, kY);
  translation.add(op, {x}, {y, translation.result(operation, kScale)}, math);
}

void translate_block_scale_dequantize(Translation& translation, const Record& operation) {
  constexpr auto kX = CUDNN_ATTR_OPERATION_BLOCK_SCALE_DEQUANTIZE_XDESC,
                 kY = CUDNN_ATTR_OPERATION_BLOCK_SCALE_DEQUANTIZE_YDESC,
                 kScale = CUDNN_ATTR_OPERATION_BLOCK_SCALE_DEQUANTIZE_SCALE_DESC;
  const TensorId x = translation.operand(operation, kX);
  const TensorFacts scale = translation.facts(operation, kScale);
  BlockScaleDequantize op;
  op.block_size = Dims(operation.integers(CUDNN_ATTR_OPERATION_BLOCK_SCALE_DEQUANTIZE_BLOCK_SIZE));
  if (op.block_size.empty()) op.block_size = {32};
  if (op.block_size.rank() == 1)
    op.axis = blocked_axis(translation.dims(x), scale.dims, op.block_size[0]);
  op.scale_layout = layout_of(scale);
  op.negative_scale =
      operation.integer_or(CUDNN_ATTR_OPERATION_BLOCK_SCALE_DEQUANTIZE_NEG_SCALE, 0) != 0;
  const DType math =
      math_of(translation, operation, CUDNN_ATTR_OPERATION_BLOCK_SCALE_DEQUANTIZE_MATH_PREC, x);
  translation.add(op, {x, translation.operand(operation, kScale)},
                  {translation.result(operation, kY)}, math);
}

}  // namespace ashlar::cudnn
