#include <limits>

#include "backend/translate/translation.hpp"

namespace ashlar::cudnn {

namespace {

ResampleMode mode_of(std::int64_t mode) {
  switch (mode) {
    case CUDNN_RESAMPLE_NEAREST: return ResampleMode::nearest;
    case CUDNN_RESAMPLE_BILINEAR: return ResampleMode::bilinear;
    case CUDNN_RESAMPLE_AVGPOOL_INCLUDE_PADDING: return ResampleMode::avgpool_include_padding;
    case CUDNN_RESAMPLE_AVGPOOL_EXCLUDE_PADDING: return ResampleMode::avgpool_exclude_padding;
    case CUDNN_RESAMPLE_MAXPOOL: return ResampleMode::maxpool;
    default:
      fail(CUDNN_STATUS_BAD_PARAM, "CUDNN_ATTR_RESAMPLE_MODE: got {}, expected 0 to 4", mode);
  }
}

PaddingMode padding_of(std::int64_t mode) {
  return mode == CUDNN_NEG_INF_PAD    ? PaddingMode::neg_inf
         : mode == CUDNN_EDGE_VAL_PAD ? PaddingMode::edge
                                      : PaddingMode::zero;
}

Dims whole_numbers(const Record& descriptor, cudnnBackendAttributeName_t attribute,
                   const char* name) {
  Dims values;
  for (const cudnnFraction_t& fraction : descriptor.fractions(attribute)) {
    if (fraction.denominator == 0 || fraction.numerator % fraction.denominator != 0)
      fail(CUDNN_STATUS_BAD_PARAM, "{}: got {}/{}, expected an integer for pooling", name,
           fraction.numerator, fraction.denominator);
    values.push_back(fraction.numerator / fraction.denominator);
  }
  return values;
}

// Whether interpolation aligns corners: a step of (x - 1) / (y - 1).
bool aligns_corners(const Record& descriptor, const Dims& x, const Dims& y) {
  const auto strides = descriptor.fractions(CUDNN_ATTR_RESAMPLE_STRIDES);
  if (static_cast<int>(strides.size()) + 2 != x.rank()) return false;
  for (int axis = 2; axis < x.rank(); ++axis) {
    const cudnnFraction_t& step = strides[static_cast<std::size_t>(axis - 2)];
    if (step.numerator * (y[axis] - 1) != step.denominator * (x[axis] - 1)) return false;
  }
  return true;
}

void read_attributes(ResampleAttributes& op, const Record& descriptor, const Dims& x,
                     const Dims& y) {
  op.mode = mode_of(descriptor.integer(CUDNN_ATTR_RESAMPLE_MODE));
  op.padding_mode =
      padding_of(descriptor.integer_or(CUDNN_ATTR_RESAMPLE_PADDING_MODE, CUDNN_ZERO_PAD));
  if (op.mode == ResampleMode::nearest || op.mode == ResampleMode::bilinear) {
    for (int axis = 2; axis < y.rank(); ++axis) op.size.push_back(y[axis]);
    op.align_corners = op.mode == ResampleMode::bilinear && aligns_corners(descriptor, x, y);
    return;
  }
  op.window =
      whole_numbers(descriptor, CUDNN_ATTR_RESAMPLE_WINDOW_DIMS, "CUDNN_ATTR_RESAMPLE_WINDOW_DIMS");
  op.stride = whole_numbers(descriptor, CUDNN_ATTR_RESAMPLE_STRIDES, "CUDNN_ATTR_RESAMPLE_STRIDES");
  op.padding = whole_numbers(descriptor, CUDNN_ATTR_RESAMPLE_PRE_PADDINGS,
                             "CUDNN_ATTR_RESAMPLE_PRE_PADDINGS");
  op.post_padding = whole_numbers(descriptor, CUDNN_ATTR_RESAMPLE_POST_PADDINGS,
                                  "CUDNN_ATTR_RESAMPLE_POST_PADDINGS");
}

// Padding as wide as the window leaves windows that contain only padding.
bool has_empty_windows(const ResampleAttributes& op) {
  for (int axis = 0; axis < op.window.rank(); ++axis)
    if (op.padding[axis] >= op.window[axis] || (*op.post_padding)[axis] >= op.window[axis])
      return true;
  return false;
}

// x with explicit padding.
TensorId with_padding(Translation& translation, TensorId x, const ResampleAttributes& op) {
  const DType dtype = translation.tensor(x).dtype;
  const bool is_max = op.mode == ResampleMode::maxpool;
  const double filler = is_max && op.padding_mode == PaddingMode::neg_inf
                            ? -std::numeric_limits<double>::infinity()
                            : 0.0;
  for (int axis = 2; axis < translation.dims(x).rank(); ++axis) {
    const Dims whole = translation.dims(x);
    const auto border = [&](std::int64_t width, std::int64_t edge) {
      Dims dims = whole, start = Dims::filled(whole.rank(), 0), limit = whole;
      dims[axis] = width;
      start[axis] = edge;
      limit[axis] = edge + 1;
      const TensorId source =
          is_max && op.padding_mode == PaddingMode::edge
              ? translation.value(Slice{start, limit, {}}, {x}, dtype)
              : translation.pointwise(PointwiseMode::identity,
                                      {translation.constant(filler, f32, whole.rank())}, dtype);
      return translation.expanded(source, dims);
    };
    const std::int64_t before = op.padding[axis - 2], after = (*op.post_padding)[axis - 2];
    std::vector<TensorId> parts;
    if (before > 0) parts.push_back(border(before, 0));
    parts.push_back(x);
    if (after > 0) parts.push_back(border(after, whole[axis] - 1));
    if (parts.size() > 1) x = translation.value(Concat{axis}, parts, dtype);
  }
  return x;
}

void drop_padding(ResampleAttributes& op) {
  if (op.mode == ResampleMode::avgpool_exclude_padding)
    fail(CUDNN_STATUS_NOT_SUPPORTED_PADDING,
         "CUDNN_ATTR_RESAMPLE_PRE_PADDINGS: got windows that contain only padding, which have no "
         "mean "
         "when padding is excluded, "
         "expected less than CUDNN_ATTR_RESAMPLE_WINDOW_DIMS on every axis");
  op.padding = Dims::filled(op.window.rank(), 0);
  op.post_padding = op.padding;
}

DType compute_type(const Translation& translation, const Record& descriptor, TensorId x) {
  return compute_of(translation,
                    static_cast<cudnnDataType_t>(
                        descriptor.integer_or(CUDNN_ATTR_RESAMPLE_COMP_TYPE, CUDNN_DATA_FLOAT)),
                    std::array{x});
}

}  // namespace

void translate_resample_forward(Translation& translation, const Record& operation) {
  constexpr auto kY = CUDNN_ATTR_OPERATION_RESAMPLE_FWD_YDESC,
                 kIndex = CUDNN_ATTR_OPERATION_RESAMPLE_FWD_IDXDESC;
  const Record& descriptor = operation.record(CUDNN_ATTR_OPERATION_RESAMPLE_FWD_DESC);
  TensorId x = translation.operand(operation, CUDNN_ATTR_OPERATION_RESAMPLE_FWD_XDESC);
  ResampleForward op;
  read_attributes(op, descriptor, translation.dims(x), translation.facts(operation, kY).dims);
  if (has_empty_windows(op)) {
    x = with_padding(translation, x, op);
    drop_padding(op);
  }
  const TensorId y = translation.result(operation, kY);
  const TensorId index = translation.result_or_none(operation, kIndex);
  translation.add(op, {x}, {y, index}, compute_type(translation, descriptor, x));
}

void translate_resample_backward(Translation& translation, const Record& operation) {
  constexpr auto kDx = CUDNN_ATTR_OPERATION_RESAMPLE_BWD_DXDESC;
  const Record& descriptor = operation.record(CUDNN_ATTR_OPERATION_RESAMPLE_BWD_DESC);
  const TensorId dy = translation.operand(operation, CUDNN_ATTR_OPERATION_RESAMPLE_BWD_DYDESC);
  const TensorId index =
      translation.operand_or_none(operation, CUDNN_ATTR_OPERATION_RESAMPLE_BWD_IDXDESC);
  TensorId x = translation.operand_or_none(operation, CUDNN_ATTR_OPERATION_RESAMPLE_BWD_XDESC);
  const Dims dx = translation.facts(operation, kDx).dims;
  ResampleBackward op;
  read_attributes(op, descriptor, dx, translation.dims(dy));
  if (op.mode != ResampleMode::maxpool) x = kNoTensor;  // average pooling backward does not read x
  const DType compute = compute_type(translation, descriptor, dy);
  if (!has_empty_windows(op)) {
    translation.add(op, {dy, index == kNoTensor ? x : kNoTensor, index},
                    {translation.result(operation, kDx)}, compute);
    return;
  }
  Dims padded = dx, start = Dims::filled(dx.rank(), 0), limit = dx;
  for (int axis = 2; axis < dx.rank(); ++axis) {
    start[axis] = op.padding[axis - 2];
    limit[axis] = start[axis] + dx[axis];
    padded[axis] += start[axis] + (*op.post_padding)[axis - 2];
  }
  if (x != kNoTensor) x = with_padding(translation, x, op);
  drop_padding(op);
  const TensorId whole = translation.value(op, {dy, index == kNoTensor ? x : kNoTensor, index},
                                           translation.tensor(dy).dtype, compute, padded);
  translation.add(Slice{start, limit, {}}, {whole}, {translation.result(operation, kDx)});
}

}  // namespace ashlar::cudnn
