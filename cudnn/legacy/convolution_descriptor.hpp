// Convolution descriptors of the older calls.
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
  // What Set...Descriptor leaves alone.
  cudnnMathType_t math = CUDNN_DEFAULT_MATH;
  cudnnReorderType_t reordering = CUDNN_DEFAULT_REORDER;
  int groups = 1;
};

namespace ashlar::cudnn {

// What a descriptor says; throws Failure(BAD_PARAM) for one that was created but never set.
const cudnnConvolutionStruct& convolution_of(cudnnConvolutionDescriptor_t descriptor,
                                             const char* parameter);

ConvAttributes attributes_of(const cudnnConvolutionStruct& conv);

// The extents of the result, from checked operands: throws Failure(BAD_PARAM) for ranks, channels
// and extents that do not go together.
Dims forward_dims(const cudnnConvolutionStruct& conv, const TensorSpec& x, const char* x_name,
                  const TensorSpec& w, const char* w_name);

}  // namespace ashlar::cudnn
