#include <algorithm>

#include "backend/translate/translation.hpp"

namespace ashlar::cudnn {

namespace {

constexpr auto kX = CUDNN_ATTR_OPERATION_REDUCTION_XDESC, kY = CUDNN_ATTR_OPERATION_REDUCTION_YDESC;

ReductionMode mode_of(std::int64_t mode) {
  switch (mode) {
    case CUDNN_REDUCE_TENSOR_ADD: return ReductionMode::add;
    case CUDNN_REDUCE_TENSOR_MUL: return ReductionMode::mul;
    case CUDNN_REDUCE_TENSOR_MIN: return ReductionMode::min;
    case CUDNN_REDUCE_TENSOR_MAX: return ReductionMode::max;
    case CUDNN_REDUCE_TENSOR_AMAX: return ReductionMode::amax;
    case CUDNN_REDUCE_TENSOR_AVG: return ReductionMode::avg;
    case CUDNN_REDUCE_TENSOR_NORM1: return ReductionMode::norm1;
    case CUDNN_REDUCE_TENSOR_NORM2: return ReductionMode::norm2;
    case CUDNN_REDUCE_TENSOR_MUL_NO_ZEROS: return ReductionMode::mul_no_zeros;
    default:
      fail(CUDNN_STATUS_BAD_PARAM, "CUDNN_ATTR_REDUCTION_OPERATOR: got {}, expected 0 to 8", mode);
  }
}

bool is_reduced_to(const Dims& x, const Dims& y) {
  if (x.rank() != y.rank() || x == y) return false;
  for (int axis = 0; axis < x.rank(); ++axis)
    if (y[axis] != x[axis] && y[axis] != 1) return false;
  return true;
}

// Clients may leave a virtual result with the extents of its operand. The operation that reads it
// then determines the reduced dims.
Dims intended_dims(const Translation& translation, const Record& operation, const Dims& x) {
  const TensorFacts y = translation.facts(operation, kY);
  if (!y.is_virtual || y.dims != x) return y.dims;
  for (const Record* reader : translation.readers_of(y.uid))
    if (reader->type == CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR &&
        reader->has(CUDNN_ATTR_OPERATION_POINTWISE_YDESC)) {
      const Dims dims = translation.facts(*reader, CUDNN_ATTR_OPERATION_POINTWISE_YDESC).dims;
      if (is_reduced_to(x, dims)) return dims;
    }
  return y.dims;
}

// The axes that the descriptors reduce, before any shape override.
Dims described_axes(const Record& operation) {
  const TensorFacts x = facts_of(operation.record(kX), {}), y = facts_of(operation.record(kY), {});
  Dims axes;
  for (int axis = 0; axis < std::min(x.dims.rank(), y.dims.rank()); ++axis)
    if (y.dims[axis] == 1 && x.dims[axis] != 1) axes.push_back(axis);
  return axes;
}

}  // namespace

void translate_reduction(Translation& translation, const Record& operation) {
  const Record& descriptor = operation.record(CUDNN_ATTR_OPERATION_REDUCTION_DESC);
  Reduction op;
  op.mode = mode_of(descriptor.integer(CUDNN_ATTR_REDUCTION_OPERATOR));
  TensorId x = translation.operand(operation, kX);
  const auto requested = static_cast<cudnnDataType_t>(
      descriptor.integer_or(CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_DATA_FLOAT));
  const DType compute = compute_of(translation, requested, std::array{x});
  if (translation.facts(operation, kY).has_inferred_dims) {
    op.axes = described_axes(operation);
    translation.add(op, {x}, {translation.result(operation, kY)}, compute);
    return;
  }
  const Dims from = translation.dims(x), to = intended_dims(translation, operation, from);
  if (from == to) {  // nothing to reduce; modes such as AMAX still apply to the elements
    translation.store(operation, kY,
                      op.mode == ReductionMode::amax || op.mode == ReductionMode::norm1 ||
                              op.mode == ReductionMode::norm2
                          ? translation.pointwise(PointwiseMode::abs, {x}, compute, compute)
                          : x);
    return;
  }
  // An axis reduced to groups (query heads that share a key head) is split in two, and one is
  // reduced.
  Dims split, retained;
  bool is_grouped = false;
  for (int axis = 0; axis < from.rank() && to.rank() == from.rank(); ++axis) {
    const bool grouped = to[axis] > 1 && to[axis] < from[axis] && from[axis] % to[axis] == 0;
    split.push_back(grouped ? to[axis] : from[axis]);
    retained.push_back(to[axis]);
    if (!grouped) continue;
    is_grouped = true;
    split.push_back(from[axis] / to[axis]);
    retained.push_back(1);
  }
  if (!is_grouped) {
    const bool as_described = translation.facts(operation, kY).dims == to;
    translation.add(
        op, {x},
        {as_described ? translation.result(operation, kY) : translation.result(operation, kY, to)},
        compute);
    return;
  }
  x = translation.value(Reshape{split}, {x}, translation.tensor(x).dtype);
  const TensorId sums = translation.value(op, {x}, compute, compute, retained);
  translation.store(operation, kY, translation.value(Reshape{to}, {sums}, compute));
}

}  // namespace ashlar::cudnn
