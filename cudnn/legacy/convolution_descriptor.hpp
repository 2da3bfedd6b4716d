// cudnnConvolutionDescriptor_t.
#pragma once

#include <cudnn.h>

#include <ashlar/ops.hpp>

#include "core/tensor_spec.hpp"

struct cudnnConvolutionStruct {
  static constexpr const char* kTypeName = "cudnnConvolutionDescriptor_t";
  bool is_set = false;
  // One value per spatial axis.
  ashlar::Dims padding = {}, stride = {}, dilation = {};
  cudnnConvolutionMode_t mode = CUDNN_CONVOLUTION;
  cudnnDataType_t compute = CUDNN_DATA_FLOAT;
  // Not changed by cudnnSetConvolution*Descriptor().
  cudnnMathType_t math = CUDNN_DEFAULT_MATH;
  cudnnReorderType_t reordering = CUDNN_DEFAULT_REORDER;
  int groups = 1;
};

namespace ashlar::cudnn {

// The fields of a descriptor; throws Failure(BAD_PARAM) for one that was never set.
const cudnnConvolutionStruct& convolution_of(cudnnConvolutionDescriptor_t descriptor,
                                             const char* parameter);

ConvAttributes attributes_of(const cudnnConvolutionStruct& conv);

// The dims of y. Throws Failure(BAD_PARAM) for inconsistent ranks, channels or extents.
Dims forward_dims(const cudnnConvolutionStruct& conv, const TensorSpec& x, const char* x_name,
                  const TensorSpec& w, const char* w_name);

}  // namespace ashlar::cudnn
