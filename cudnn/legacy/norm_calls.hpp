// Batch normalization of the legacy API: the common part of cudnnBatchNormalization* and
// cudnnNormalization*.
#pragma once

#include <cudnn.h>

#include <optional>

#include "core/tensor_spec.hpp"
#include "legacy/activation.hpp"

namespace ashlar::cudnn {

enum class NormOps : std::uint8_t {
  norm,
  activation,
  add_activation
};  // values of cudnnBatchNormOps_t

struct NormKind {
  bool per_activation = false;  // statistics per element of a sample, else per channel
  NormOps ops = NormOps::norm;
  std::optional<Activation> activation = {};  // if `ops` has one
  double epsilon = 0.0;
};
// Throws Failure for an invalid `ops`, and for a missing activation descriptor.
NormKind norm_kind(bool per_activation, int ops, cudnnActivationDescriptor_t activation,
                   double epsilon);

// The spec of parameters and statistics for x: contiguous, f32 unless x is f64.
TensorSpec derived_norm_spec(const TensorSpec& x, bool per_activation);

// z, or its gradient, if `ops` has one.
std::optional<TensorSpec> added_spec(const NormKind& kind, const TensorSpec& x,
                                     cudnnTensorDescriptor_t descriptor, const char* name);
// Throws Failure(BAD_PARAM) when the extents differ from those derived from x.
void require_parameters(const NormKind& kind, const TensorSpec& x, const TensorSpec& other,
                        const char* name);

// Memory that the caller provides.
struct Space {
  void* data = nullptr;
  std::size_t bytes = 0;
};
// Reserve space bytes: one bit per element for ReLU, the pre-activation values for other
// activations.
std::size_t norm_reserve_bytes(const NormKind& kind, const TensorSpec& x);

// y = alpha * activation(norm(x) + z) + beta * y
struct NormInference {
  NormKind kind;
  TensorSpec x_spec, y_spec, params_spec, stats_spec;
  std::optional<TensorSpec> z_spec;
  const void *alpha, *beta, *x, *z, *scale, *bias, *mean, *variance;
  void* y;

  void run(cudnnHandle_t handle) const;
};

struct NormTraining {
  NormKind kind;
  TensorSpec x_spec, y_spec, params_spec, stats_spec;
  std::optional<TensorSpec> z_spec;
  const void *alpha = nullptr, *beta = nullptr;
  const void *x = nullptr, *z = nullptr, *scale = nullptr, *bias = nullptr;
  void* y = nullptr;
  double momentum = 0.0;
  void *running_mean = nullptr, *running_variance = nullptr;  // both or neither
  void *saved_mean = nullptr, *saved_inv_std = nullptr;       // both or neither
  std::optional<Space> workspace = {};  // empty: the call has no workspace parameter
  Space reserve = {};

  void run(cudnnHandle_t handle) const;
  std::size_t workspace_bytes(cudnnHandle_t handle) const;
};

struct NormGradient {
  NormKind kind;
  TensorSpec x_spec, dy_spec, dx_spec, params_spec, stats_spec;
  std::optional<TensorSpec> dz_spec;
  const void *alpha_data = nullptr, *beta_data = nullptr;
  const void *alpha_params = nullptr, *beta_params = nullptr;
  const void *x = nullptr, *dy = nullptr, *scale = nullptr;
  void *dx = nullptr, *dz = nullptr, *dscale = nullptr, *dbias = nullptr;
  const void *saved_mean = nullptr, *saved_inv_std = nullptr;  // both or neither
  std::optional<Space> workspace = {};
  Space reserve = {};

  void run(cudnnHandle_t handle) const;
  std::size_t workspace_bytes(cudnnHandle_t handle) const;
};

}  // namespace ashlar::cudnn
