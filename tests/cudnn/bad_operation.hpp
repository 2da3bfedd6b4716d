// Builds and finalizes an operation whose tensors are given by their dims.
#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "cudnn/scoped_descriptor.hpp"

namespace ashlar::cudnn::test {

using Call = std::function<cudnnStatus_t()>;

struct TensorShape {
  TensorShape(std::vector<std::int64_t> dims_, cudnnDataType_t type_ = CUDNN_DATA_FLOAT)
      : dims(std::move(dims_)), type(type_) {}
  std::vector<std::int64_t> dims;
  cudnnDataType_t type;
};
using Tensors = std::vector<std::pair<cudnnBackendAttributeName_t, TensorShape>>;
// Parameter descriptors, created when the call runs.
using Parameters =
    std::vector<std::pair<cudnnBackendAttributeName_t, std::function<ScopedDescriptor()>>>;

// Tensors get the uids 1, 2, ... in order.
Call operation(cudnnBackendDescriptorType_t type, Tensors tensors, Parameters parameters,
               std::vector<ScopedDescriptor::Attribute> others = {});

}  // namespace ashlar::cudnn::test
