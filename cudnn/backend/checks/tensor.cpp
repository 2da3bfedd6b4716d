#include <algorithm>
#include <bit>

#include "backend/checks/operand.hpp"
#include "backend/finalize.hpp"
#include "core/data_type.hpp"

namespace ashlar::cudnn {

namespace {

// Bound on the elements a tensor spans, so that sizes in bytes fit into 64 bits.
constexpr std::int64_t kMaxElements = std::int64_t{1} << 58;

bool is_too_large(ExtentsView dims, ExtentsView strides, std::int64_t vector) {
  std::int64_t elements = vector, last = 0;
  for (std::size_t axis = 0; axis < dims.size(); ++axis) {
    std::int64_t reach = 0;
    if (__builtin_mul_overflow(elements, dims[axis], &elements) ||
        __builtin_mul_overflow(dims[axis] - 1, strides[axis], &reach) ||
        __builtin_add_overflow(last, reach, &last) || elements > kMaxElements ||
        last > kMaxElements)
      return true;
  }
  return false;
}

void check_vectors(const Record& tensor, std::int64_t rank) {
  require_min(tensor, CUDNN_ATTR_TENSOR_VECTOR_COUNT, 1);
  if (tensor.integer(CUDNN_ATTR_TENSOR_VECTOR_COUNT) == 1) return;
  const std::int64_t axis = tensor.integer(CUDNN_ATTR_TENSOR_VECTORIZED_DIMENSION);
  if (axis < 0 || axis >= rank)
    fail_bound(CUDNN_ATTR_TENSOR_VECTORIZED_DIMENSION, std::to_string(axis),
               fmt::format("0 to {}, an axis of the tensor", rank - 1));
}

}  // namespace

FinishedRef finalize_tensor(const Record& tensor) {
  require_set(tensor, {CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_ATTR_TENSOR_DIMENSIONS,
                       CUDNN_ATTR_TENSOR_STRIDES, CUDNN_ATTR_TENSOR_UNIQUE_ID});
  const auto type = static_cast<cudnnDataType_t>(tensor.integer(CUDNN_ATTR_TENSOR_DATA_TYPE));
  if (!dtype_of(type))
    fail(CUDNN_STATUS_BAD_PARAM, "CUDNN_ATTR_TENSOR_DATA_TYPE: got {}, expected a storage type",
         data_type_name(type));
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  const ExtentsView dims = tensor.integers(CUDNN_ATTR_TENSOR_DIMENSIONS);
  const ExtentsView strides = tensor.integers(CUDNN_ATTR_TENSOR_STRIDES);
  require_within(tensor, CUDNN_ATTR_TENSOR_DIMENSIONS, 1, kMost);
  require_within(tensor, CUDNN_ATTR_TENSOR_STRIDES, 0, kMost);
  require_count(strides.size(), CUDNN_ATTR_TENSOR_STRIDES, static_cast<std::int64_t>(dims.size()),
                "CUDNN_ATTR_TENSOR_DIMENSIONS");
  check_vectors(tensor, static_cast<std::int64_t>(dims.size()));
  if (is_too_large(dims, strides, tensor.integer(CUDNN_ATTR_TENSOR_VECTOR_COUNT)))
    fail_bound(CUDNN_ATTR_TENSOR_DIMENSIONS,
               fmt::format("{} with strides {}", text_of(dims), text_of(strides)),
               fmt::format("at most {} elements", kMaxElements));

  if (tensor.has(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT)) {
    const std::int64_t alignment = tensor.integer(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT);
    if (alignment < 1 || !std::has_single_bit(static_cast<std::uint64_t>(alignment)))
      fail_bound(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, std::to_string(alignment), "a power of two");
  }
  const bool is_by_value = tensor.integer(CUDNN_ATTR_TENSOR_IS_BY_VALUE) != 0;
  if (is_by_value && tensor.integer(CUDNN_ATTR_TENSOR_IS_VIRTUAL) != 0)
    fail(CUDNN_STATUS_BAD_PARAM,
         "CUDNN_ATTR_TENSOR_IS_BY_VALUE: got a virtual tensor, expected one that is not virtual");
  if (is_by_value && std::ranges::any_of(dims, [](std::int64_t extent) { return extent != 1; }))
    fail(CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH,
         "CUDNN_ATTR_TENSOR_DIMENSIONS: got {}, expected one element for a tensor by value",
         text_of(dims));
  Operand(tensor, CUDNN_ATTR_TENSOR_RAGGED_OFFSET_DESC).require_integer();
  return attributes_only();
}

}  // namespace ashlar::cudnn
