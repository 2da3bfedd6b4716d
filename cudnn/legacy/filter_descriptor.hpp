// cudnnFilterDescriptor_t.
#pragma once

#include <cudnn.h>

#include "core/tensor_spec.hpp"

struct cudnnFilterStruct {
  static constexpr const char* kTypeName = "cudnnFilterDescriptor_t";
  bool is_set = false;
  cudnnDataType_t type = CUDNN_DATA_FLOAT;
  cudnnTensorFormat_t format = CUDNN_TENSOR_NCHW;
  ashlar::cudnn::TensorSpec spec;  // [K, C, window...]
};

namespace ashlar::cudnn {

// The spec of a descriptor; throws Failure(BAD_PARAM) for one that was never set.
TensorSpec spec_of(cudnnFilterDescriptor_t descriptor, const char* parameter);

void set(cudnnFilterStruct& descriptor, cudnnDataType_t type, cudnnTensorFormat_t format,
         const Dims& dims);

}  // namespace ashlar::cudnn
