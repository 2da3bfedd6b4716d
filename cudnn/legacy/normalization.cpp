// cudnnNormalization*: batch normalization with separate descriptors for parameters and statistics.
// The algorithm does not change the result. Channel groups share no statistics, so groupCnt does
// not either.
#include "core/data_type.hpp"
#include "legacy/call.hpp"
#include "legacy/norm_calls.hpp"
#include "legacy/set_object.hpp"
#include "legacy/tensor_descriptor.hpp"

namespace ashlar::cudnn {

namespace {

constexpr const char* kScaleAndBias = "normScaleBiasDesc";
constexpr const char* kTheirGradients = "dNormScaleBiasDesc";
constexpr const char* kStatistics = "normMeanVarDesc";

bool is_per_activation(cudnnNormMode_t mode) {
  return require_enum(mode, CUDNN_NORM_PER_CHANNEL, "mode") == CUDNN_NORM_PER_ACTIVATION;
}

NormKind kind_of(cudnnNormMode_t mode, cudnnNormOps_t ops, cudnnNormAlgo_t algo,
                 cudnnActivationDescriptor_t activation, double epsilon) {
  require_enum(algo, CUDNN_NORM_ALGO_PERSIST, "algo");
  return norm_kind(is_per_activation(mode), static_cast<int>(ops), activation, epsilon);
}

void require_groups(const TensorSpec& x, int groups) {
  if (groups < 1 || (x.dims.rank() > 1 && x.dims[1] % groups != 0))
    fail(CUDNN_STATUS_BAD_PARAM, "groupCnt: got {}, expected a divisor of the channels of xDesc {}",
         groups, to_string(x.dims));
}

// The arguments of the forward call.
NormTraining forward(const NormKind& kind, cudnnTensorDescriptor_t x_desc,
                     cudnnTensorDescriptor_t z_desc, cudnnTensorDescriptor_t y_desc,
                     cudnnTensorDescriptor_t params_desc, cudnnTensorDescriptor_t stats_desc,
                     int groups) {
  NormTraining norm;
  norm.kind = kind;
  norm.x_spec = spec_of(x_desc, "xDesc");
  require_groups(norm.x_spec, groups);
  norm.y_spec = spec_of(y_desc, "yDesc");
  require_same_dims(norm.x_spec, "xDesc", norm.y_spec, "yDesc");
  norm.z_spec = added_spec(kind, norm.x_spec, z_desc, "zDesc");
  norm.params_spec = spec_of(params_desc, kScaleAndBias);
  norm.stats_spec = spec_of(stats_desc, kStatistics);
  require_parameters(kind, norm.x_spec, norm.params_spec, kScaleAndBias);
  require_parameters(kind, norm.x_spec, norm.stats_spec, kStatistics);
  return norm;
}

NormGradient backward(const NormKind& kind, cudnnTensorDescriptor_t x_desc,
                      cudnnTensorDescriptor_t dy_desc, cudnnTensorDescriptor_t dz_desc,
                      cudnnTensorDescriptor_t dx_desc, cudnnTensorDescriptor_t params_desc,
                      cudnnTensorDescriptor_t stats_desc, int groups) {
  NormGradient norm;
  norm.kind = kind;
  norm.x_spec = spec_of(x_desc, "xDesc");
  require_groups(norm.x_spec, groups);
  norm.dy_spec = spec_of(dy_desc, "dyDesc");
  norm.dx_spec = spec_of(dx_desc, "dxDesc");
  require_same_dims(norm.x_spec, "xDesc", norm.dy_spec, "dyDesc");
  require_same_dims(norm.x_spec, "xDesc", norm.dx_spec, "dxDesc");
  norm.dz_spec = added_spec(kind, norm.x_spec, dz_desc, "dzDesc");
  norm.params_spec = spec_of(params_desc, kTheirGradients);
  norm.stats_spec = spec_of(stats_desc, kStatistics);
  require_parameters(kind, norm.x_spec, norm.params_spec, kTheirGradients);
  require_parameters(kind, norm.x_spec, norm.stats_spec, kStatistics);
  return norm;
}

}  // namespace

}  // namespace ashlar::cudnn

using namespace ashlar::cudnn;

cudnnStatus_t cudnnDeriveNormTensorDescriptor(cudnnTensorDescriptor_t params_desc,
                                              cudnnTensorDescriptor_t stats_desc,
                                              cudnnTensorDescriptor_t x_desc, cudnnNormMode_t mode,
                                              int groups) {
  return guarded_legacy(__func__, [&] {
    cudnnTensorStruct& params = object(params_desc, "derivedNormScaleBiasDesc");
    cudnnTensorStruct& stats = object(stats_desc, "derivedNormMeanVarDesc");
    const TensorSpec x = spec_of(x_desc, "xDesc");
    require_groups(x, groups);
    const TensorSpec spec = derived_norm_spec(x, is_per_activation(mode));
    for (cudnnTensorStruct* derived : {&params, &stats})
      set(*derived, data_type_of(spec.dtype), spec);
  });
}

cudnnStatus_t cudnnNormalizationForwardInference(
    cudnnHandle_t handle, cudnnNormMode_t mode, cudnnNormOps_t ops, cudnnNormAlgo_t algo,
    const void* alpha, const void* beta, cudnnTensorDescriptor_t x_desc, const void* x,
    cudnnTensorDescriptor_t params_desc, const void* scale, const void* bias,
    cudnnTensorDescriptor_t stats_desc, const void* mean, const void* variance,
    cudnnTensorDescriptor_t z_desc, const void* z, cudnnActivationDescriptor_t activation,
    cudnnTensorDescriptor_t y_desc, void* y, double epsilon, int groups) {
  return guarded_legacy(__func__, [&] {
    object(handle, "handle");
    const NormKind kind = kind_of(mode, ops, algo, activation, epsilon);
    const NormTraining tensors =
        forward(kind, x_desc, z_desc, y_desc, params_desc, stats_desc, groups);
    const NormInference norm = {.kind = kind,
                                .x_spec = tensors.x_spec,
                                .y_spec = tensors.y_spec,
                                .params_spec = tensors.params_spec,
                                .stats_spec = tensors.stats_spec,
                                .z_spec = tensors.z_spec,
                                .alpha = alpha,
                                .beta = beta,
                                .x = x,
                                .z = z,
                                .scale = scale,
                                .bias = bias,
                                .mean = mean,
                                .variance = variance,
                                .y = y};
    norm.run(handle);
  });
}

cudnnStatus_t cudnnNormalizationForwardTraining(
    cudnnHandle_t handle, cudnnNormMode_t mode, cudnnNormOps_t ops, cudnnNormAlgo_t algo,
    const void* alpha, const void* beta, cudnnTensorDescriptor_t x_desc, const void* x,
    cudnnTensorDescriptor_t params_desc, const void* scale, const void* bias, double momentum,
    cudnnTensorDescriptor_t stats_desc, void* running_mean, void* running_variance, double epsilon,
    void* saved_mean, void* saved_inv_std, cudnnActivationDescriptor_t activation,
    cudnnTensorDescriptor_t z_desc, const void* z, cudnnTensorDescriptor_t y_desc, void* y,
    void* workspace, size_t workspace_bytes, void* reserve, size_t reserve_bytes, int groups) {
  return guarded_legacy(__func__, [&] {
    object(handle, "handle");
    const NormKind kind = kind_of(mode, ops, algo, activation, epsilon);
    NormTraining norm = forward(kind, x_desc, z_desc, y_desc, params_desc, stats_desc, groups);
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

cudnnStatus_t cudnnNormalizationBackward(
    cudnnHandle_t handle, cudnnNormMode_t mode, cudnnNormOps_t ops, cudnnNormAlgo_t algo,
    const void* alpha_data, const void* beta_data, const void* alpha_params,
    const void* beta_params, cudnnTensorDescriptor_t x_desc, const void* x,
    cudnnTensorDescriptor_t /*y_desc*/, const void* /*y*/, cudnnTensorDescriptor_t dy_desc,
    const void* dy, cudnnTensorDescriptor_t dz_desc, void* dz, cudnnTensorDescriptor_t dx_desc,
    void* dx, cudnnTensorDescriptor_t params_desc, const void* scale, const void* /*bias*/,
    void* dscale, void* dbias, double epsilon, cudnnTensorDescriptor_t stats_desc,
    const void* saved_mean, const void* saved_inv_std, cudnnActivationDescriptor_t activation,
    void* workspace, size_t workspace_bytes, void* reserve, size_t reserve_bytes, int groups) {
  return guarded_legacy(__func__, [&] {
    object(handle, "handle");
    const NormKind kind = kind_of(mode, ops, algo, activation, epsilon);
    NormGradient norm =
        backward(kind, x_desc, dy_desc, dz_desc, dx_desc, params_desc, stats_desc, groups);
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

cudnnStatus_t cudnnGetNormalizationForwardTrainingWorkspaceSize(
    cudnnHandle_t handle, cudnnNormMode_t mode, cudnnNormOps_t ops, cudnnNormAlgo_t algo,
    cudnnTensorDescriptor_t x_desc, cudnnTensorDescriptor_t z_desc, cudnnTensorDescriptor_t y_desc,
    cudnnTensorDescriptor_t params_desc, cudnnActivationDescriptor_t activation,
    cudnnTensorDescriptor_t stats_desc, size_t* bytes, int groups) {
  return guarded_legacy(__func__, [&] {
    object(handle, "handle");
    required(bytes, "sizeInBytes");
    const NormKind kind = kind_of(mode, ops, algo, activation, CUDNN_BN_MIN_EPSILON);
    *bytes = forward(kind, x_desc, z_desc, y_desc, params_desc, stats_desc, groups)
                 .workspace_bytes(handle);
  });
}

cudnnStatus_t cudnnGetNormalizationBackwardWorkspaceSize(
    cudnnHandle_t handle, cudnnNormMode_t mode, cudnnNormOps_t ops, cudnnNormAlgo_t algo,
    cudnnTensorDescriptor_t x_desc, cudnnTensorDescriptor_t /*y_desc*/,
    cudnnTensorDescriptor_t dy_desc, cudnnTensorDescriptor_t dz_desc,
    cudnnTensorDescriptor_t dx_desc, cudnnTensorDescriptor_t params_desc,
    cudnnActivationDescriptor_t activation, cudnnTensorDescriptor_t stats_desc, size_t* bytes,
    int groups) {
  return guarded_legacy(__func__, [&] {
    object(handle, "handle");
    required(bytes, "sizeInBytes");
    const NormKind kind = kind_of(mode, ops, algo, activation, CUDNN_BN_MIN_EPSILON);
    *bytes = backward(kind, x_desc, dy_desc, dz_desc, dx_desc, params_desc, stats_desc, groups)
                 .workspace_bytes(handle);
  });
}

cudnnStatus_t cudnnGetNormalizationTrainingReserveSpaceSize(
    cudnnHandle_t handle, cudnnNormMode_t mode, cudnnNormOps_t ops, cudnnNormAlgo_t algo,
    cudnnActivationDescriptor_t activation, cudnnTensorDescriptor_t x_desc, size_t* bytes,
    int groups) {
  return guarded_legacy(__func__, [&] {
    object(handle, "handle");
    required(bytes, "sizeInBytes");
    const NormKind kind = kind_of(mode, ops, algo, activation, CUDNN_BN_MIN_EPSILON);
    const TensorSpec x = spec_of(x_desc, "xDesc");
    require_groups(x, groups);
    *bytes = norm_reserve_bytes(kind, x);
  });
}
