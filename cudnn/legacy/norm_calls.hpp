// Batch normalization as the older calls ask for it: what cudnnBatchNormalization* and
// cudnnNormalization* have in common.
#pragma once

#include <cudnn.h>

#include <optional>

#include "core/tensor_spec.hpp"
#include "legacy/activation.hpp"

namespace ashlar::cudnn {

enum class NormOps : std::uint8_t { norm, activation, add_activation };  // numbered as cuDNN does

struct NormKind {
  bool per_activation = false;  // statistics for every element of a sample, else for every channel
  NormOps ops = NormOps::norm;
  std::optional<Activation> activation = {};  // where ops has one
  double epsilon = 0.0;
};
// Throws Failure for what is no choice of operations, and for operations without an activation.
NormKind norm_kind(bool per_activation, int ops, cudnnActivationDescriptor_t activation,
                   double epsilon);

// What parameters and statistics are derived from x: f32 unless x is f64, without gaps.
TensorSpec derived_norm_spec(const TensorSpec& x, bool per_activation);

// z, or its gradient, where the operations have one.
std::optional<TensorSpec> added_spec(const NormKind& kind, const TensorSpec& x,
                                     cudnnTensorDescriptor_t descriptor, const char* name);
// Throws Failure(BAD_PARAM) for extents that are not those derived from x.
void require_parameters(const NormKind& kind, const TensorSpec& x, const TensorSpec& other,
                        const char* name);

// Memory a caller lends.
struct Space {
  void* data = nullptr;
  std::size_t bytes = 0;
};
// Of what the forward pass keeps for the backward pass: a bit per element for a relu, the values
// that go into any other activation.
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
  std::optional<Space> workspace = {};  // none: the call has no such parameter
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
