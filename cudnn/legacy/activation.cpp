#include "legacy/activation.hpp"

#include <array>

#include "legacy/call.hpp"
#include "legacy/graph_helpers.hpp"
#include "legacy/set_object.hpp"
#include "legacy/tensor_descriptor.hpp"

namespace ashlar::cudnn {

namespace {

bool is_relu(const Activation& activation) {
  return activation.mode == CUDNN_ACTIVATION_RELU ||
         activation.mode == CUDNN_ACTIVATION_CLIPPED_RELU;
}

Pointwise attributes_of(const Activation& activation) {
  Pointwise attributes;
  if (activation.mode == CUDNN_ACTIVATION_CLIPPED_RELU)
    attributes.relu_upper_clip = activation.coefficient;
  attributes.elu_alpha = activation.coefficient;
  attributes.swish_beta = activation.swish_beta;
  return attributes;
}

PointwiseMode forward_mode(cudnnActivationMode_t mode) {
  switch (mode) {
    case CUDNN_ACTIVATION_SIGMOID: return PointwiseMode::sigmoid_fwd;
    case CUDNN_ACTIVATION_RELU:
    case CUDNN_ACTIVATION_CLIPPED_RELU: return PointwiseMode::relu_fwd;
    case CUDNN_ACTIVATION_TANH: return PointwiseMode::tanh_fwd;
    case CUDNN_ACTIVATION_ELU: return PointwiseMode::elu_fwd;
    case CUDNN_ACTIVATION_IDENTITY: return PointwiseMode::identity;
    case CUDNN_ACTIVATION_SWISH: return PointwiseMode::swish_fwd;
  }
  return PointwiseMode::identity;
}

// The input of a ReLU: without NaN propagation, NaN becomes 0.
Value relu_input(Graph& graph, const Activation& activation, Value x, DType type) {
  if (!is_relu(activation) || activation.nan == CUDNN_PROPAGATE_NAN) return x;
  return without_nan(graph, x, constant_like(graph, 0.0, x, type), type);
}

// The gradient of ReLU and CLIPPED_RELU: dy where 0 < x <= ceiling, else 0. It is 0 for NaN, with
// and without NaN propagation.
Value relu_gradient(Graph& graph, const Activation& activation, Value dy, Value x, DType type) {
  const auto where = [&](PointwiseMode comparison, double bound, Value gradient) {
    const Value holds = graph.pointwise(
        comparison, std::array{x, constant_like(graph, bound, x, type)}, Pointwise{}, in(type));
    return select(graph, holds, gradient, constant_like(graph, 0.0, x, type), type);
  };
  const Value above_zero = where(PointwiseMode::cmp_gt, 0.0, dy);
  if (activation.mode != CUDNN_ACTIVATION_CLIPPED_RELU) return above_zero;
  return where(PointwiseMode::cmp_le, activation.coefficient, above_zero);
}

// f'(x) as a function of y = f(x).
Value slope_from_result(Graph& graph, const Activation& activation, Value y, DType type) {
  const Value one = constant_like(graph, 1.0, y, type);
  if (activation.mode == CUDNN_ACTIVATION_SIGMOID)  // y (1 - y)
    return binary(graph, PointwiseMode::mul, y, binary(graph, PointwiseMode::sub, one, y, type),
                  type);
  if (activation.mode == CUDNN_ACTIVATION_TANH)  // 1 - y^2
    return binary(graph, PointwiseMode::sub, one, binary(graph, PointwiseMode::mul, y, y, type),
                  type);
  // ELU: 1 for y >= 0, else alpha * exp(x) = y + alpha.
  const Value zero = constant_like(graph, 0.0, y, type);
  const Value is_linear = graph.pointwise(PointwiseMode::cmp_ge, std::array{y, zero});
  const Value alpha = constant_like(graph, activation.coefficient, y, type);
  return select(graph, is_linear, one, binary(graph, PointwiseMode::add, y, alpha, type), type);
}

}  // namespace

Activation activation_of(cudnnActivationDescriptor_t descriptor, const char* parameter) {
  return set_object(descriptor, parameter);
}

void add_to_key(PlanKey& key, const Activation& activation) {
  key.add(activation.mode)
      .add(activation.nan)
      .add(activation.coefficient)
      .add(activation.swish_beta);
}

bool gradient_reads_y(const Activation& activation) {
  return activation.mode == CUDNN_ACTIVATION_SIGMOID || activation.mode == CUDNN_ACTIVATION_TANH ||
         activation.mode == CUDNN_ACTIVATION_ELU;
}

bool gradient_reads_x(const Activation& activation) {
  return is_relu(activation) || activation.mode == CUDNN_ACTIVATION_SWISH;
}

Value activated(Graph& graph, const Activation& activation, Value x, DType type) {
  return graph.pointwise(forward_mode(activation.mode),
                         std::array{relu_input(graph, activation, x, type)},
                         attributes_of(activation), in(type));
}

Value activation_gradient(Graph& graph, const Activation& activation, Value y, Value dy, Value x,
                          DType type) {
  if (activation.mode == CUDNN_ACTIVATION_IDENTITY)
    return unary(graph, PointwiseMode::identity, dy, type);
  if (gradient_reads_y(activation))
    return binary(graph, PointwiseMode::mul, dy, slope_from_result(graph, activation, y, type),
                  type);
  if (is_relu(activation)) return relu_gradient(graph, activation, dy, x, type);
  return graph.pointwise(PointwiseMode::swish_bwd, std::array{dy, x}, attributes_of(activation),
                         in(type));
}

}  // namespace ashlar::cudnn

using namespace ashlar::cudnn;
using ashlar::Graph;
using ashlar::Value;

cudnnStatus_t cudnnCreateActivationDescriptor(cudnnActivationDescriptor_t* activation) {
  return guarded_legacy(__func__, [&] { create_object(activation, "activationDesc"); });
}

cudnnStatus_t cudnnSetActivationDescriptor(cudnnActivationDescriptor_t activation,
                                           cudnnActivationMode_t mode, cudnnNanPropagation_t nan,
                                           double coefficient) {
  return guarded_legacy(__func__, [&] {
    auto& descriptor = object(activation, "activationDesc");
    require_enum(mode, CUDNN_ACTIVATION_SWISH, "mode");
    require_enum(nan, CUDNN_PROPAGATE_NAN, "reluNanOpt");
    if (mode == CUDNN_ACTIVATION_CLIPPED_RELU && !(coefficient >= 0.0))
      fail(CUDNN_STATUS_BAD_PARAM, "coef: got {}, expected a ceiling of at least 0", coefficient);
    descriptor.mode = mode;
    descriptor.nan = nan;
    descriptor.coefficient = coefficient;
    descriptor.is_set = true;
  });
}

cudnnStatus_t cudnnGetActivationDescriptor(cudnnActivationDescriptor_t activation,
                                           cudnnActivationMode_t* mode, cudnnNanPropagation_t* nan,
                                           double* coefficient) {
  return guarded_legacy(__func__, [&] {
    const Activation fields = activation_of(activation, "activationDesc");
    *required(mode, "mode") = fields.mode;
    *required(nan, "reluNanOpt") = fields.nan;
    *required(coefficient, "coef") = fields.coefficient;
  });
}

cudnnStatus_t cudnnSetActivationDescriptorSwishBeta(cudnnActivationDescriptor_t activation,
                                                    double beta) {
  return guarded_legacy(__func__, [&] { object(activation, "activationDesc").swish_beta = beta; });
}

cudnnStatus_t cudnnGetActivationDescriptorSwishBeta(cudnnActivationDescriptor_t activation,
                                                    double* beta) {
  return guarded_legacy(__func__, [&] {
    const auto& descriptor = object(activation, "activationDesc");
    *required(beta, "swish_beta") = descriptor.swish_beta;
  });
}

cudnnStatus_t cudnnDestroyActivationDescriptor(cudnnActivationDescriptor_t activation) {
  return guarded_legacy(__func__, [&] { destroy_object(activation, "activationDesc"); });
}

cudnnStatus_t cudnnActivationForward(cudnnHandle_t handle, cudnnActivationDescriptor_t activation,
                                     const void* alpha, cudnnTensorDescriptor_t x_desc,
                                     const void* x, const void* beta,
                                     cudnnTensorDescriptor_t y_desc, void* y) {
  return guarded_legacy(__func__, [&] {
    Call call(handle, "activation_forward");
    const Activation how = activation_of(activation, "activationDesc");
    const TensorSpec x_spec = spec_of(x_desc, "xDesc"), y_spec = spec_of(y_desc, "yDesc");
    require_same_dims(x_spec, "xDesc", y_spec, "yDesc");
    required(x, "x");
    required(y, "y");
    call.key(how).key(x_spec).key(y_spec).blend(alpha, beta, y_spec.dtype);
    call.compile([&](Graph& graph) {
      const Value input = add_input(graph, "x", x_spec);
      call.output(graph, "y", activated(graph, how, input, compute_of(x_spec.dtype)), y_spec);
    });
    call.bind("x", x).bind("y", y).run();
  });
}

cudnnStatus_t cudnnActivationBackward(cudnnHandle_t handle, cudnnActivationDescriptor_t activation,
                                      const void* alpha, cudnnTensorDescriptor_t y_desc,
                                      const void* y, cudnnTensorDescriptor_t dy_desc,
                                      const void* dy, cudnnTensorDescriptor_t x_desc, const void* x,
                                      const void* beta, cudnnTensorDescriptor_t dx_desc, void* dx) {
  return guarded_legacy(__func__, [&] {
    Call call(handle, "activation_backward");
    const Activation how = activation_of(activation, "activationDesc");
    const TensorSpec y_spec = spec_of(y_desc, "yDesc"), dy_spec = spec_of(dy_desc, "dyDesc"),
                     x_spec = spec_of(x_desc, "xDesc"), dx_spec = spec_of(dx_desc, "dxDesc");
    require_same_dims(x_spec, "xDesc", y_spec, "yDesc");
    require_same_dims(x_spec, "xDesc", dy_spec, "dyDesc");
    require_same_dims(x_spec, "xDesc", dx_spec, "dxDesc");
    required(y, "y");
    required(dy, "dy");
    required(x, "x");
    required(dx, "dx");
    call.key(how).key(y_spec).key(dy_spec).key(x_spec).key(dx_spec);
    call.blend(alpha, beta, dx_spec.dtype);
    const bool reads_x = gradient_reads_x(how), reads_y = gradient_reads_y(how);
    call.compile([&](Graph& graph) {
      const Value result = reads_y ? add_input(graph, "y", y_spec) : Value{};
      const Value input = reads_x ? add_input(graph, "x", x_spec) : Value{};
      const Value gradient = add_input(graph, "dy", dy_spec);
      call.output(
          graph, "dx",
          activation_gradient(graph, how, result, gradient, input, compute_of(dx_spec.dtype)),
          dx_spec);
    });
    if (reads_y) call.bind("y", y);
    if (reads_x) call.bind("x", x);
    call.bind("dy", dy).bind("dx", dx).run();
  });
}
