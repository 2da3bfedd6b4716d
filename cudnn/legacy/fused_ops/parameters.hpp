// What a fused-ops plan is told: constants before it is made, pointers and numbers before it runs.
#pragma once

#include <cudnn.h>

#include <map>
#include <optional>

#include "legacy/activation.hpp"
#include "legacy/convolution_descriptor.hpp"
#include "legacy/filter_descriptor.hpp"
#include "legacy/tensor_descriptor.hpp"

struct cudnnFusedOpsConstParamStruct {
  static constexpr const char* kTypeName = "cudnnFusedOpsConstParamPack_t";
  cudnnFusedOps_t ops;
  // Descriptors as they were when they were set; absent ones are null.
  std::map<cudnnFusedOpsConstParamLabel_t, cudnnTensorStruct> tensors = {};
  std::map<cudnnFusedOpsConstParamLabel_t, cudnnFilterStruct> filters = {};
  std::optional<cudnnConvolutionStruct> conv = {};
  std::optional<cudnnActivationStruct> activation = {};
  cudnnBatchNormMode_t bn_mode = CUDNN_BATCHNORM_PER_ACTIVATION;
  std::map<cudnnFusedOpsConstParamLabel_t, cudnnFusedOpsPointerPlaceHolder_t> pointers = {};
};

struct cudnnFusedOpsVariantParamStruct {
  static constexpr const char* kTypeName = "cudnnFusedOpsVariantParamPack_t";
  cudnnFusedOps_t ops;
  std::map<cudnnFusedOpsVariantParamLabel_t, void*> pointers = {};
  std::size_t workspace_bytes = 0;
  std::int64_t count = 0;
  double exponential_average_factor = 0.0, epsilon = 0.0;
};

namespace ashlar::cudnn {

using FusedConstants = cudnnFusedOpsConstParamStruct;
using FusedVariants = cudnnFusedOpsVariantParamStruct;

// Throws Failure(BAD_PARAM) for what is no fusion.
cudnnFusedOps_t require_fusion(cudnnFusedOps_t ops);

// Whether a pointer is announced.
bool has(const FusedConstants& constants, cudnnFusedOpsConstParamLabel_t placeholder);
// What a label holds; throw Failure(BAD_PARAM) where it was not set.
TensorSpec tensor_of(const FusedConstants& constants, cudnnFusedOpsConstParamLabel_t label);
TensorSpec filter_of(const FusedConstants& constants, cudnnFusedOpsConstParamLabel_t label);
const cudnnConvolutionStruct& conv_of(const FusedConstants& constants);
// Identity where there is none.
Activation activation_of(const FusedConstants& constants);

}  // namespace ashlar::cudnn
