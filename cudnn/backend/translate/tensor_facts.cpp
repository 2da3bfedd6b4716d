#include "backend/translate/tensor_facts.hpp"

#include "core/data_type.hpp"

namespace ashlar::cudnn {

TensorFacts facts_of(const Record& tensor, const ShapeOverrides& overrides) {
  TensorFacts facts;
  facts.uid = tensor.integer(CUDNN_ATTR_TENSOR_UNIQUE_ID);
  const auto type = static_cast<cudnnDataType_t>(tensor.integer(CUDNN_ATTR_TENSOR_DATA_TYPE));
  facts.dtype = require_dtype(type, "CUDNN_ATTR_TENSOR_DATA_TYPE");
  facts.dims = Dims(tensor.integers(CUDNN_ATTR_TENSOR_DIMENSIONS));
  facts.strides = Dims(tensor.integers(CUDNN_ATTR_TENSOR_STRIDES));
  facts.is_virtual = tensor.integer_or(CUDNN_ATTR_TENSOR_IS_VIRTUAL, 0) != 0;
  facts.is_by_value = tensor.integer_or(CUDNN_ATTR_TENSOR_IS_BY_VALUE, 0) != 0;
  facts.ragged_offset = tensor.record_or_null(CUDNN_ATTR_TENSOR_RAGGED_OFFSET_DESC);
  facts.reordering = static_cast<cudnnBackendTensorReordering_t>(
      tensor.integer_or(CUDNN_ATTR_TENSOR_REORDERING_MODE, CUDNN_TENSOR_REORDERING_NONE));
  if (const auto found = overrides.find(facts.uid); found != overrides.end()) {
    facts.dims = found->second.dims;
    facts.strides = found->second.strides;
  } else {
    facts.has_inferred_dims = facts.is_virtual && !overrides.empty();
  }
  facts.vector = tensor.integer_or(CUDNN_ATTR_TENSOR_VECTOR_COUNT, vector_width(type));
  facts.vector_axis =
      static_cast<int>(tensor.integer_or(CUDNN_ATTR_TENSOR_VECTORIZED_DIMENSION, 1));
  if (facts.vector > 1) {
    if (facts.vector_axis < 0 || facts.vector_axis >= facts.dims.rank())
      fail(CUDNN_STATUS_BAD_PARAM_OUT_OF_BOUND,
           "tensor {}: CUDNN_ATTR_TENSOR_VECTORIZED_DIMENSION: got {}, expected an axis below {}",
           facts.uid, facts.vector_axis, facts.dims.rank());
    // The descriptor's extents and strides count vectors.
    facts.dims[facts.vector_axis] *= facts.vector;
    for (std::int64_t& stride : facts.strides) stride *= facts.vector;
  }
  return facts;
}

}  // namespace ashlar::cudnn
