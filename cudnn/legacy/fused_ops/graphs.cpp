#include "legacy/fused_ops/graphs.hpp"

#include "legacy/convolution.hpp"
#include "legacy/fused_ops/labels.hpp"
#include "legacy/graph_helpers.hpp"

namespace ashlar::cudnn {

Fusion::Fusion(FusedConstants constants) : constants_(std::move(constants)) {
  for (const auto& [label, tensor] : constants_.tensors)
    if (tensor.spec.dtype == f64) type_ = f64;
}

CompileOptions Fusion::options() const {
  CompileOptions options;
  options.allow_winograd = false;
  if (constants_.conv) options.allow_tf32 = constants_.conv->math != CUDNN_FMA_MATH;
  // Programs rely on BN_FINALIZE needing no workspace.
  if (constants_.ops == CUDNN_FUSED_BN_FINALIZE_STATISTICS_TRAINING ||
      constants_.ops == CUDNN_FUSED_BN_FINALIZE_STATISTICS_INFERENCE)
    options.workspace_limit = 0;
  return options;
}

void Fusion::add_to_key(Call& call) const {
  call.key(constants_.ops);
  for (const auto& [label, tensor] : constants_.tensors) call.key(label).key(tensor.spec);
  for (const auto& [label, filter] : constants_.filters) call.key(label).key(filter.spec);
  for (const auto& [label, placeholder] : constants_.pointers)
    call.key(label).key(placeholder != CUDNN_PTR_NULL);
  call.key(activation_of(constants_)).key(constants_.conv.has_value());
  if (!constants_.conv) return;
  const cudnnConvolutionStruct& conv = *constants_.conv;
  call.key(conv.padding).key(conv.stride).key(conv.dilation).key(conv.mode);
  call.key(conv.compute).key(conv.math).key(conv.groups);
}

void Fusion::build(Graph& graph) const {
  switch (constants_.ops) {
    case CUDNN_FUSED_SCALE_BIAS_ACTIVATION_CONV_BNSTATS: return build_conv_stats(graph);
    case CUDNN_FUSED_SCALE_BIAS_ACTIVATION_WGRAD: return build_filter_gradient(graph);
    case CUDNN_FUSED_BN_FINALIZE_STATISTICS_TRAINING:
      return build_finalize(graph, NormPhase::training);
    case CUDNN_FUSED_BN_FINALIZE_STATISTICS_INFERENCE:
      return build_finalize(graph, NormPhase::inference);
    case CUDNN_FUSED_CONV_SCALE_BIAS_ADD_ACTIVATION: return build_conv_activation(graph);
    case CUDNN_FUSED_SCALE_BIAS_ADD_ACTIVATION_GEN_BITMASK: return build_activation_mask(graph);
    case CUDNN_FUSED_DACTIVATION_FORK_DBATCHNORM: return build_norm_gradient(graph);
  }
}

// y = conv(activation(x * eq_scale + eq_bias), w), with per-channel sums of y and y^2.
void Fusion::build_conv_stats(Graph& graph) const {
  const TensorSpec x = tensor_of(constants_, CUDNN_PARAM_XDESC);
  const TensorSpec w = filter_of(constants_, CUDNN_PARAM_WDESC);
  const TensorSpec y = tensor_of(constants_, CUDNN_PARAM_YDESC);
  const Convolution conv = make_convolution(ConvKind::forward, x, w, conv_of(constants_), y);
  const Value prologue = add_prologue(graph);
  const Value result =
      add_output(graph, "y", convolved(graph, conv, prologue, add_input(graph, "w", w)), y);
  const bool wants_sum = has(constants_, CUDNN_PARAM_YSUM_PLACEHOLDER);
  const bool wants_sq_sum = has(constants_, CUDNN_PARAM_YSQSUM_PLACEHOLDER);
  if (!wants_sum && !wants_sq_sum) return;
  const TensorSpec stats = per_channel(CUDNN_PARAM_YSTATS_DESC);
  const auto sums = graph.apply(GenStats{}, {{GenStats::x, result}},
                                {{GenStats::sum, type_}, {GenStats::sq_sum, type_}}, in(type_));
  // Both sums are always computed; one without an output pointer stays an intermediate.
  if (wants_sum) add_output(graph, "y_sum", sums[GenStats::sum], stats);
  if (wants_sq_sum) add_output(graph, "y_sq_sum", sums[GenStats::sq_sum], stats);
}

// dw of conv(activation(x * eq_scale + eq_bias), w) = y
void Fusion::build_filter_gradient(Graph& graph) const {
  const TensorSpec x = tensor_of(constants_, CUDNN_PARAM_XDESC);
  const TensorSpec dw = filter_of(constants_, CUDNN_PARAM_DWDESC);
  const TensorSpec dy = tensor_of(constants_, CUDNN_PARAM_DYDESC);
  const Convolution conv =
      make_convolution(ConvKind::backward_filter, x, dw, conv_of(constants_), dy);
  const Value prologue = add_prologue(graph);
  add_output(graph, "dw", convolved(graph, conv, prologue, add_input(graph, "dy", dy)), dw);
}

void Fusion::build_finalize(Graph& graph, NormPhase phase) const {
  const TensorSpec stats = per_channel(CUDNN_PARAM_BN_SCALEBIAS_MEANVAR_DESC);
  const TensorSpec equivalent = per_channel(CUDNN_PARAM_BN_EQSCALEBIAS_DESC);
  const int rank = stats.dims.rank();
  BnFinalize op;
  op.phase = phase;
  std::vector<Operand<BnFinalize>> operands = {
      {BnFinalize::scale, add_input(graph, "scale", stats)},
      {BnFinalize::bias, add_input(graph, "bias", stats)},
      {BnFinalize::epsilon_tensor, graph.scalar("epsilon", f64, rank)},
  };
  std::vector<Wanted<BnFinalize>> wanted = {{BnFinalize::eq_scale, type_},
                                            {BnFinalize::eq_bias, type_}};
  const bool is_training = phase == NormPhase::training;
  const bool has_running = has(constants_, CUDNN_PARAM_BN_RUNNING_MEAN_PLACEHOLDER) &&
                           has(constants_, CUDNN_PARAM_BN_RUNNING_VAR_PLACEHOLDER);
  if (has_running || !is_training) {
    operands.push_back({BnFinalize::running_mean, add_input(graph, "running_mean", stats)});
    operands.push_back({BnFinalize::running_var, add_input(graph, "running_var", stats)});
  }
  if (is_training) {
    const TensorSpec sums = per_channel(CUDNN_PARAM_YSTATS_DESC);
    operands.push_back({BnFinalize::sum, add_input(graph, "y_sum", sums)});
    operands.push_back({BnFinalize::sq_sum, add_input(graph, "y_sq_sum", sums)});
    operands.push_back({BnFinalize::count_tensor, graph.scalar("count", i64, rank)});
    if (has_running)
      operands.push_back({BnFinalize::momentum_tensor, graph.scalar("momentum", f64, rank)});
    wanted.emplace_back(BnFinalize::saved_mean, type_);
    wanted.emplace_back(BnFinalize::saved_inv_variance, type_);
    if (has_running) {
      wanted.emplace_back(BnFinalize::next_running_mean, type_);
      wanted.emplace_back(BnFinalize::next_running_var, type_);
    }
  }
  const auto results = graph.apply(op, operands, wanted, in(type_));
  const auto add_result = [&](cudnnFusedOpsConstParamLabel_t placeholder, const char* name,
                              BnFinalize::Out slot, const TensorSpec& spec) {
    if (has(constants_, placeholder)) add_output(graph, name, results[slot], spec);
  };
  add_result(CUDNN_PARAM_BN_EQSCALE_PLACEHOLDER, "eq_scale", BnFinalize::eq_scale, equivalent);
  add_result(CUDNN_PARAM_BN_EQBIAS_PLACEHOLDER, "eq_bias", BnFinalize::eq_bias, equivalent);
  if (!is_training) return;
  add_result(CUDNN_PARAM_BN_SAVED_MEAN_PLACEHOLDER, "saved_mean", BnFinalize::saved_mean, stats);
  add_result(CUDNN_PARAM_BN_SAVED_INVSTD_PLACEHOLDER, "saved_inv_std",
             BnFinalize::saved_inv_variance, stats);
  if (!has_running) return;
  add_result(CUDNN_PARAM_BN_RUNNING_MEAN_PLACEHOLDER, "running_mean.next",
             BnFinalize::next_running_mean, stats);
  add_result(CUDNN_PARAM_BN_RUNNING_VAR_PLACEHOLDER, "running_var.next",
             BnFinalize::next_running_var, stats);
}

// y = activation(conv(x, w) * eq_scale + eq_bias + z)
void Fusion::build_conv_activation(Graph& graph) const {
  const TensorSpec x = tensor_of(constants_, CUDNN_PARAM_XDESC);
  const TensorSpec w = filter_of(constants_, CUDNN_PARAM_WDESC);
  const TensorSpec y = tensor_of(constants_, CUDNN_PARAM_YDESC);
  const Convolution conv = make_convolution(ConvKind::forward, x, w, conv_of(constants_), y);
  const Value sum = convolved(graph, conv, add_input(graph, "x", x), add_input(graph, "w", w));
  const Value added = with_z(graph, with_equivalent(graph, sum), y.dims);
  add_output(graph, "y", activated_value(graph, added), y);
}

// y = activation(x * eq_scale + eq_bias + z), with the bit mask of positive pre-activations.
void Fusion::build_activation_mask(Graph& graph) const {
  const TensorSpec x = tensor_of(constants_, CUDNN_PARAM_XDESC);
  const TensorSpec y = tensor_of(constants_, CUDNN_PARAM_YDESC);
  require_same_dims(x, "CUDNN_PARAM_XDESC", y, "CUDNN_PARAM_YDESC");
  const Value sum = with_z(graph, with_equivalent(graph, add_input(graph, "x", x)), y.dims);
  add_output(graph, "y", activated_value(graph, sum), y);
  if (!has(constants_, CUDNN_PARAM_ACTIVATION_BITMASK_PLACEHOLDER)) return;
  const Value zero = constant_like(graph, 0.0, sum, type_);
  add_output(graph, "bitmask", graph.pointwise(PointwiseMode::cmp_gt, std::array{sum, zero}),
             bitmask(y.dims));
}

// The backward of build_activation_mask: dz = dy where the bit is set, then batch-norm backward.
void Fusion::build_norm_gradient(Graph& graph) const {
  const TensorSpec x = tensor_of(constants_, CUDNN_PARAM_XDESC);
  const TensorSpec dy = tensor_of(constants_, CUDNN_PARAM_DYDESC);
  const TensorSpec stats = per_channel(CUDNN_PARAM_BN_SCALEBIAS_MEANVAR_DESC);
  require_same_dims(x, "CUDNN_PARAM_XDESC", dy, "CUDNN_PARAM_DYDESC");
  Value gradient = add_input(graph, "dy", dy);
  if (has(constants_, CUDNN_PARAM_ACTIVATION_BITMASK_PLACEHOLDER))
    gradient = select(graph, add_input(graph, "bitmask", bitmask(dy.dims)), gradient,
                      constant_like(graph, 0.0, gradient, type_), type_);
  if (has(constants_, CUDNN_PARAM_DZDATA_PLACEHOLDER))
    add_output(graph, "dz", unary(graph, PointwiseMode::identity, gradient, type_),
               tensor_of(constants_, CUDNN_PARAM_DZDESC));
  NormBackward op;
  op.mode = NormMode::batch;
  const NormGradients gradients =
      graph.norm_backward(add_input(graph, "x", x), gradient, op,
                          {.scale = add_input(graph, "scale", stats),
                           .mean = add_input(graph, "saved_mean", stats),
                           .inv_variance = add_input(graph, "saved_inv_std", stats)},
                          in(type_));
  if (has(constants_, CUDNN_PARAM_DXDATA_PLACEHOLDER))
    add_output(graph, "dx", gradients.dx, tensor_of(constants_, CUDNN_PARAM_DXDESC));
  if (has(constants_, CUDNN_PARAM_BN_DSCALE_PLACEHOLDER))
    add_output(graph, "dscale", gradients.dscale, stats);
  if (has(constants_, CUDNN_PARAM_BN_DBIAS_PLACEHOLDER))
    add_output(graph, "dbias", gradients.dbias, stats);
}

Value Fusion::add_prologue(Graph& graph) const {
  const TensorSpec x = tensor_of(constants_, CUDNN_PARAM_XDESC);
  const Value input = add_input(graph, "x", x);
  const Value value = activated_value(graph, with_equivalent(graph, input));
  return value.id() == input.id() ? input : cast(value, x.dtype);
}

Value Fusion::scaled(Graph& graph, Value value, cudnnFusedOpsConstParamLabel_t descriptor,
                     cudnnFusedOpsConstParamLabel_t scale, const char* scale_name,
                     cudnnFusedOpsConstParamLabel_t bias, const char* bias_name) const {
  const auto combined = [&](PointwiseMode mode, const char* name) {
    const TensorSpec spec = tensor_of(constants_, descriptor);
    broadcast_spec(spec, value.dims(), name_of(descriptor));  // only for its check
    value = binary(graph, mode, value, add_input(graph, name, spec), type_);
  };
  if (has(constants_, scale)) combined(PointwiseMode::mul, scale_name);
  if (has(constants_, bias)) combined(PointwiseMode::add, bias_name);
  return value;
}

Value Fusion::with_equivalent(Graph& graph, Value value) const {
  return scaled(graph, value, CUDNN_PARAM_BN_EQSCALEBIAS_DESC, CUDNN_PARAM_BN_EQSCALE_PLACEHOLDER,
                "eq_scale", CUDNN_PARAM_BN_EQBIAS_PLACEHOLDER, "eq_bias");
}

Value Fusion::with_z(Graph& graph, Value value, const Dims& dims) const {
  if (!has(constants_, CUDNN_PARAM_ZDATA_PLACEHOLDER)) return value;
  const TensorSpec spec = tensor_of(constants_, CUDNN_PARAM_ZDESC);
  broadcast_spec(spec, dims, "CUDNN_PARAM_ZDESC");
  const Value z = scaled(graph, add_input(graph, "z", spec), CUDNN_PARAM_BN_Z_EQSCALEBIAS_DESC,
                         CUDNN_PARAM_BN_Z_EQSCALE_PLACEHOLDER, "z_eq_scale",
                         CUDNN_PARAM_BN_Z_EQBIAS_PLACEHOLDER, "z_eq_bias");
  return binary(graph, PointwiseMode::add, value, z, type_);
}

Value Fusion::activated_value(Graph& graph, Value value) const {
  const Activation activation = activation_of(constants_);
  return activation.mode == CUDNN_ACTIVATION_IDENTITY ? value
                                                      : activated(graph, activation, value, type_);
}

TensorSpec Fusion::bitmask(const Dims& dims) const {
  constexpr std::int64_t kChannelBits = 64;
  TensorSpec positions;
  positions.dtype = boolean;
  positions.dims = positions.strides = dims;
  std::int64_t stride = (dims[1] + kChannelBits - 1) / kChannelBits * kChannelBits;
  positions.strides[1] = 1;
  for (int axis = dims.rank() - 1; axis >= 0; --axis) {
    if (axis == 1) continue;
    positions.strides[axis] = stride;
    stride *= dims[axis];
  }
  const TensorSpec provided = tensor_of(constants_, CUDNN_PARAM_ACTIVATION_BITMASK_DESC);
  if (byte_size(provided) < byte_size(positions))
    fail(CUDNN_STATUS_BAD_PARAM, "CUDNN_PARAM_ACTIVATION_BITMASK_DESC: got {} bytes, expected {}",
         byte_size(provided), byte_size(positions));
  return positions;
}

TensorSpec Fusion::per_channel(cudnnFusedOpsConstParamLabel_t label) const {
  const TensorSpec spec = tensor_of(constants_, label);
  for (int axis = 0; axis < spec.dims.rank(); ++axis)
    if (spec.dims.rank() < 2 || (axis != 1 && spec.dims[axis] != 1))
      fail(CUDNN_STATUS_BAD_PARAM, "{}.dims: got {}, expected [1, C, 1...], one per channel",
           name_of(label), to_string(spec.dims));
  return spec;
}

}  // namespace ashlar::cudnn
