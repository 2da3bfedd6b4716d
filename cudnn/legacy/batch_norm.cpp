// cudnnBatchNormalization*: one descriptor for parameters and statistics.
#include "core/data_type.hpp"
#include "legacy/call.hpp"
#include "legacy/norm_calls.hpp"
#include "legacy/set_object.hpp"
#include "legacy/tensor_descriptor.hpp"

namespace ashlar::cudnn {

namespace {

constexpr const char* kParameters = "bnScaleBiasMeanVarDesc";
constexpr const char* kGradients = "dBnScaleBiasDesc";

// PERSISTENT selects a kernel of NVIDIA's; the result is that of SPATIAL.
bool is_per_activation(cudnnBatchNormMode_t mode) {
  return require_enum(mode, CUDNN_BATCHNORM_SPATIAL_PERSISTENT, "mode") ==
         CUDNN_BATCHNORM_PER_ACTIVATION;
}

NormKind kind_of(cudnnBatchNormMode_t mode, cudnnBatchNormOps_t ops,
                 cudnnActivationDescriptor_t activation, double epsilon) {
  return norm_kind(is_per_activation(mode), static_cast<int>(ops), activation, epsilon);
}

NormTraining training(const NormKind& kind, cudnnTensorDescriptor_t x_desc,
                      cudnnTensorDescriptor_t z_desc, cudnnTensorDescriptor_t y_desc,
                      cudnnTensorDescriptor_t stats_desc) {
  NormTraining norm;
  norm.kind = kind;
  norm.x_spec = spec_of(x_desc, "xDesc");
  norm.y_spec = spec_of(y_desc, "yDesc");
  require_same_dims(norm.x_spec, "xDesc", norm.y_spec, "yDesc");
  norm.z_spec = added_spec(kind, norm.x_spec, z_desc, "zDesc");
  norm.params_spec = norm.stats_spec = spec_of(stats_desc, kParameters);
  require_parameters(kind, norm.x_spec, norm.params_spec, kParameters);
  return norm;
}

NormGradient gradient(const NormKind& kind, cudnnTensorDescriptor_t x_desc,
                      cudnnTensorDescriptor_t dy_desc, cudnnTensorDescriptor_t dz_desc,
                      cudnnTensorDescriptor_t dx_desc, cudnnTensorDescriptor_t params_desc) {
  NormGradient norm;
  norm.kind = kind;
  norm.x_spec = spec_of(x_desc, "xDesc");
  norm.dy_spec = spec_of(dy_desc, "dyDesc");
  norm.dx_spec = spec_of(dx_desc, "dxDesc");
  require_same_dims(norm.x_spec, "xDesc", norm.dy_spec, "dyDesc");
  require_same_dims(norm.x_spec, "xDesc", norm.dx_spec, "dxDesc");
  norm.dz_spec = added_spec(kind, norm.x_spec, dz_desc, "dzDesc");
  norm.params_spec = norm.stats_spec = spec_of(params_desc, kGradients);
  require_parameters(kind, norm.x_spec, norm.params_spec, kGradients);
  return norm;
}

}  // namespace

}  // namespace ashlar::cudnn

using namespace ashlar::cudnn;

cudnnStatus_t cudnnDeriveBNTensorDescriptor(cudnnTensorDescriptor_t derived_desc,
                                            cudnnTensorDescriptor_t x_desc,
                                            cudnnBatchNormMode_t mode) {
  return guarded_legacy(__func__, [&] {
    cudnnTensorStruct& derived = object(derived_desc, "derivedBnDesc");
    const TensorSpec spec = derived_norm_spec(spec_of(x_desc, "xDesc"), is_per_activation(mode));
    set(derived, data_type_of(spec.dtype), spec);
  });
}

cudnnStatus_t cudnnBatchNormalizationForwardInference(
    cudnnHandle_t handle, cudnnBatchNormMode_t mode, const void* alpha, const void* beta,
    cudnnTensorDescriptor_t x_desc, const void* x, cudnnTensorDescriptor_t y_desc, void* y,
    cudnnTensorDescriptor_t stats_desc, const void* scale, const void* bias, const void* mean,
    const void* variance, double epsilon) {
  return guarded_legacy(__func__, [&] {
    object(handle, "handle");
    const NormKind kind = kind_of(mode, CUDNN_BATCHNORM_OPS_BN, nullptr, epsilon);
    const NormTraining tensors = training(kind, x_desc, nullptr, y_desc, stats_desc);
    const NormInference norm = {.kind = kind,
                                .x_spec = tensors.x_spec,
                                .y_spec = tensors.y_spec,
                                .params_spec = tensors.params_spec,
                                .stats_spec = tensors.stats_spec,
                                .z_spec = {},
                                .alpha = alpha,
                                .beta = beta,
                                .x = x,
                                .z = nullptr,
                                .scale = scale,
                                .bias = bias,
                                .mean = mean,
                                .variance = variance,
                                .y = y};
    norm.run(handle);
  });
}

cudnnStatus_t cudnnBatchNormalizationForwardTraining(
    cudnnHandle_t handle, cudnnBatchNormMode_t mode, const void* alpha, const void* beta,
    cudnnTensorDescriptor_t x_desc, const void* x, cudnnTensorDescriptor_t y_desc, void* y,
    cudnnTensorDescriptor_t stats_desc, const void* scale, const void* bias, double momentum,
    void* running_mean, void* running_variance, double epsilon, void* saved_mean,
    void* saved_inv_std) {
  return guarded_legacy(__func__, [&] {
    object(handle, "handle");
    const NormKind kind = kind_of(mode, CUDNN_BATCHNORM_OPS_BN, nullptr, epsilon);
    NormTraining norm = training(kind, x_desc, nullptr, y_desc, stats_desc);
    norm.alpha = alpha, norm.beta = beta;
    norm.x = x, norm.y = y, norm.scale = scale, norm.bias = bias;
    norm.momentum = momentum;
    norm.running_mean = running_mean, norm.running_variance = running_variance;
    norm.saved_mean = saved_mean, norm.saved_inv_std = saved_inv_std;
    norm.run(handle);
  });
}

cudnnStatus_t cudnnBatchNormalizationForwardTrainingEx(
    cudnnHandle_t handle, cudnnBatchNormMode_t mode, cudnnBatchNormOps_t ops, const void* alpha,
    const void* beta, cudnnTensorDescriptor_t x_desc, const void* x, cudnnTensorDescriptor_t z_desc,
    const void* z, cudnnTensorDescriptor_t y_desc, void* y, cudnnTensorDescriptor_t stats_desc,
    const void* scale, const void* bias, double momentum, void* running_mean,
    void* running_variance, double epsilon, void* saved_mean, void* saved_inv_std,
    cudnnActivationDescriptor_t activation, void* workspace, size_t workspace_bytes, void* reserve,
    size_t reserve_bytes) {
  return guarded_legacy(__func__, [&] {
    object(handle, "handle");
    const NormKind kind = kind_of(mode, ops, activation, epsilon);
    NormTraining norm = training(kind, x_desc, z_desc, y_desc, stats_desc);
    norm.alpha = alpha, norm.beta = beta;
    norm.x = x, norm.z = z, norm.y = y, norm.scale = scale, norm.bias = bias;
    norm.momentum = momentum;
    norm.running_mean = running_mean, norm.running_variance = running_variance;
    norm.saved_mean = saved_mean, norm.saved_inv_std = saved_inv_std;
    norm.workspace = {workspace, workspace_bytes};
    norm.reserve = {reserve, reserve_bytes};
    norm.run(handle);
  });
}

cudnnStatus_t cudnnBatchNormalizationBackward(
    cudnnHandle_t handle, cudnnBatchNormMode_t mode, const void* alpha_data, const void* beta_data,
    const void* alpha_params, const void* beta_params, cudnnTensorDescriptor_t x_desc,
    const void* x, cudnnTensorDescriptor_t dy_desc, const void* dy, cudnnTensorDescriptor_t dx_desc,
    void* dx, cudnnTensorDescriptor_t params_desc, const void* scale, void* dscale, void* dbias,
    double epsilon, const void* saved_mean, const void* saved_inv_std) {
  return guarded_legacy(__func__, [&] {
    object(handle, "handle");
    const NormKind kind = kind_of(mode, CUDNN_BATCHNORM_OPS_BN, nullptr, epsilon);
    NormGradient norm = gradient(kind, x_desc, dy_desc, nullptr, dx_desc, params_desc);
    norm.alpha_data = alpha_data, norm.beta_data = beta_data;
    norm.alpha_params = alpha_params, norm.beta_params = beta_params;
    norm.x = x, norm.dy = dy, norm.dx = dx;
    norm.scale = scale, norm.dscale = dscale, norm.dbias = dbias;
    norm.saved_mean = saved_mean, norm.saved_inv_std = saved_inv_std;
    norm.run(handle);
  });
}

cudnnStatus_t cudnnBatchNormalizationBackwardEx(
    cudnnHandle_t handle, cudnnBatchNormMode_t mode, cudnnBatchNormOps_t ops,
    const void* alpha_data, const void* beta_data, const void* alpha_params,
    const void* beta_params, cudnnTensorDescriptor_t x_desc, const void* x,
    cudnnTensorDescriptor_t /*y_desc*/, const void* /*y*/, cudnnTensorDescriptor_t dy_desc,
    const void* dy, cudnnTensorDescriptor_t dz_desc, void* dz, cudnnTensorDescriptor_t dx_desc,
    void* dx, cudnnTensorDescriptor_t params_desc, const void* scale, const void* /*bias*/,
    void* dscale, void* dbias, double epsilon, const void* saved_mean, const void* saved_inv_std,
    cudnnActivationDescriptor_t activation, void* workspace, size_t workspace_bytes, void* reserve,
    size_t reserve_bytes) {
  return guarded_legacy(__func__, [&] {
    object(handle, "handle");
    const NormKind kind = kind_of(mode, ops, activation, epsilon);
    NormGradient norm = gradient(kind, x_desc, dy_desc, dz_desc, dx_desc, params_desc);
    norm.alpha_data = alpha_data, norm.beta_data = beta_data;
    norm.alpha_params = alpha_params, norm.beta_params = beta_params;
    norm.x = x, norm.dy = dy, norm.dx = dx, norm.dz = dz;
    norm.scale = scale, norm.dscale = dscale, norm.dbias = dbias;
    norm.saved_mean = saved_mean, norm.saved_inv_std = saved_inv_std;
    norm.workspace = {workspace, workspace_bytes};
    norm.reserve = {reserve, reserve_bytes};
    norm.run(handle);
  });
}

cudnnStatus_t cudnnGetBatchNormalizationForwardTrainingExWorkspaceSize(
    cudnnHandle_t handle, cudnnBatchNormMode_t mode, cudnnBatchNormOps_t ops,
    cudnnTensorDescriptor_t x_desc, cudnnTensorDescriptor_t z_desc, cudnnTensorDescriptor_t y_desc,
    cudnnTensorDescriptor_t stats_desc, cudnnActivationDescriptor_t activation, size_t* bytes) {
  return guarded_legacy(__func__, [&] {
    object(handle, "handle");
    required(bytes, "sizeInBytes");
    const NormKind kind = kind_of(mode, ops, activation, CUDNN_BN_MIN_EPSILON);
    *bytes = training(kind, x_desc, z_desc, y_desc, stats_desc).workspace_bytes(handle);
  });
}

cudnnStatus_t cudnnGetBatchNormalizationBackwardExWorkspaceSize(
    cudnnHandle_t handle, cudnnBatchNormMode_t mode, cudnnBatchNormOps_t ops,
    cudnnTensorDescriptor_t x_desc, cudnnTensorDescriptor_t /*y_desc*/,
    cudnnTensorDescriptor_t dy_desc, cudnnTensorDescriptor_t dz_desc,
    cudnnTensorDescriptor_t dx_desc, cudnnTensorDescriptor_t params_desc,
    cudnnActivationDescriptor_t activation, size_t* bytes) {
  return guarded_legacy(__func__, [&] {
    object(handle, "handle");
    required(bytes, "sizeInBytes");
    const NormKind kind = kind_of(mode, ops, activation, CUDNN_BN_MIN_EPSILON);
    *bytes = gradient(kind, x_desc, dy_desc, dz_desc, dx_desc, params_desc).workspace_bytes(handle);
  });
}

cudnnStatus_t cudnnGetBatchNormalizationTrainingExReserveSpaceSize(
    cudnnHandle_t handle, cudnnBatchNormMode_t mode, cudnnBatchNormOps_t ops,
    cudnnActivationDescriptor_t activation, cudnnTensorDescriptor_t x_desc, size_t* bytes) {
  return guarded_legacy(__func__, [&] {
    object(handle, "handle");
    required(bytes, "sizeInBytes");
    const NormKind kind = kind_of(mode, ops, activation, CUDNN_BN_MIN_EPSILON);
    *bytes = norm_reserve_bytes(kind, spec_of(x_desc, "xDesc"));
  });
}
