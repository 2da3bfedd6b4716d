// TensorFacts: the attributes of a tensor descriptor as a plain struct.
#pragma once

#include <ashlar/dims.hpp>
#include <ashlar/dtype.hpp>
#include <map>

#include "backend/record.hpp"

namespace ashlar::cudnn {

// Shapes and strides that the variant pack overrides, by uid. Other tensors keep the shapes of
// their descriptors, except virtual ones, whose shapes are inferred.
struct ShapeOverride {
  Dims dims, strides;
};
using ShapeOverrides = std::map<std::int64_t, ShapeOverride>;

struct TensorFacts {
  std::int64_t uid = 0;
  DType dtype = f32;
  Dims dims = {};     // in elements, also along a vectorised axis
  Dims strides = {};  // of a vectorised tensor: from one vector to the next
  std::int64_t vector = 1;
  int vector_axis = 1;
  bool is_virtual = false;
  bool is_by_value = false;
  bool has_inferred_dims =
      false;  // some shape is overridden: the dims of this virtual tensor are inferred
  cudnnBackendTensorReordering_t reordering = CUDNN_TENSOR_REORDERING_NONE;
  const Record* ragged_offset = nullptr;

  // Whether two descriptors address the same elements in the same layout.
  bool is_same_view(const TensorFacts& other) const {
    return dims == other.dims && strides == other.strides && dtype == other.dtype &&
           vector == other.vector;
  }
};

TensorFacts facts_of(const Record& tensor, const ShapeOverrides& overrides);

}  // namespace ashlar::cudnn
