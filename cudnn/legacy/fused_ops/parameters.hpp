// The parameter packs of fused-ops plans: constants for cudnnMakeFusedOpsPlan(), pointers and
// scalars for cudnnFusedOpsExecute().
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
  // Copies of the descriptors at the time they were set.
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

// Throws Failure(BAD_PARAM) for an invalid cudnnFusedOps_t.
cudnnFusedOps_t require_fusion(cudnnFusedOps_t ops);

// Whether the placeholder says that the pointer will be set.
bool has(const FusedConstants& constants, cudnnFusedOpsConstParamLabel_t placeholder);
// The value of a label; throw Failure(BAD_PARAM) when it is not set.
TensorSpec tensor_of(const FusedConstants& constants, cudnnFusedOpsConstParamLabel_t label);
TensorSpec filter_of(const FusedConstants& constants, cudnnFusedOpsConstParamLabel_t label);
const cudnnConvolutionStruct& conv_of(const FusedConstants& constants);
// The identity when no activation is set.
Activation activation_of(const FusedConstants& constants);

}  // namespace ashlar::cudnn
