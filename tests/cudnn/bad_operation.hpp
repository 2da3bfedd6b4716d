// An operation of tensors that are told by their dims, finalized.
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
// Descriptors of parameters, made when the call is.
using Parameters =
    std::vector<std::pair<cudnnBackendAttributeName_t, std::function<ScopedDescriptor()>>>;

// Tensors get uids 1, 2, ... in their order.
Call operation(cudnnBackendDescriptorType_t type, Tensors tensors, Parameters parameters,
               std::vector<ScopedDescriptor::Attribute> others = {});

}  // namespace ashlar::cudnn::test
