// Batch normalization backward.
#include "legacy/graph_helpers.hpp"
#include "legacy/norm_graph.hpp"

namespace ashlar::cudnn {

namespace {

void prepare(Call& call, const NormGradient& norm, bool has_saved) {
  using Op = NormBackward;
  add_norm_key(call, norm.kind);
  call.key(norm.x_spec).key(norm.dy_spec).key(norm.dx_spec);
  call.key(norm.params_spec).key(norm.stats_spec).key(has_saved);
  if (norm.dz_spec) call.key(*norm.dz_spec);
  call.blend(norm.alpha_data, norm.beta_data, norm.dx_spec.dtype)
      .blend(norm.alpha_params, norm.beta_params, norm.dx_spec.dtype, 1);
  const auto build = [&](Graph& graph) {
    const DType compute = compute_of(norm.x_spec.dtype);
    const Channels channels(graph, norm.kind);
    Op op;
    op.mode = NormMode::batch;
    Value dy = add_input(graph, "dy", norm.dy_spec);
    if (norm.kind.ops != NormOps::norm)
      dy = gradient_before_activation(graph, norm.kind, dy, norm.x_spec);
    if (norm.kind.ops == NormOps::add_activation) add_output(graph, "dz", dy, *norm.dz_spec);
    const Value x = channels.input("x", norm.x_spec);
    std::vector<Operand<Op>> operands = {{Op::x, x},
                                         {Op::dy, channels.flattened(dy)},
                                         {Op::scale, channels.input("scale", norm.params_spec)}};
    if (has_saved) {
      operands.push_back({Op::mean, channels.input("saved_mean", norm.stats_spec)});
      operands.push_back({Op::inv_variance, channels.input("saved_inv_std", norm.stats_spec)});
    } else {
      operands.push_back({Op::epsilon_tensor, scalar_input(graph, "epsilon", x)});
    }
    const auto out = graph.apply(op, operands, {{Op::dx, compute}, Op::dscale, Op::dbias});
    const auto blended = [&](const char* name, Value value, const TensorSpec& spec, int pair) {
      call.output(graph, name, channels.restored(value, spec), spec, pair);
    };
    blended("dx", out[Op::dx], norm.dx_spec, 0);
    blended("dscale", out[Op::dscale], norm.params_spec, 1);
    blended("dbias", out[Op::dbias], norm.params_spec, 1);
  };
  compile_within(call, build, norm.workspace);
}

}  // namespace

std::size_t NormGradient::workspace_bytes(cudnnHandle_t handle) const {
  NormGradient fullest = *this;
  fullest.alpha_data = fullest.beta_data = fullest.alpha_params = fullest.beta_params = nullptr;
  fullest.workspace = kAnySpace;
  Call call(handle, "norm_gradient");
  prepare(call, fullest, true);
  return static_cast<std::size_t>(call.workspace_size());
}

void NormGradient::run(cudnnHandle_t handle) const {
  require_both(saved_mean, saved_inv_std, "savedMean and savedInvVariance");
  required(x, "x"), required(dy, "dy"), required(dx, "dx"), required(scale, "scale");
  required(dscale, "dScale"), required(dbias, "dBias");
  if (dz_spec) required(dz, "dz");
  require_reserve(reserve, kind, x_spec);

  Call call(handle, "norm_gradient");
  prepare(call, *this, saved_mean != nullptr);
  call.bind("x", x).bind("dy", dy).bind("dx", dx).bind("scale", scale);
  call.bind("dscale", dscale).bind("dbias", dbias);
  const HostScalar epsilon(kind.epsilon);
  if (dz_spec) call.bind("dz", dz);
  if (saved_mean != nullptr)
    call.bind("saved_mean", saved_mean).bind("saved_inv_std", saved_inv_std);
  else
    call.bind("epsilon", epsilon.as(compute_of(x_spec.dtype)));
  if (!is_identity(kind)) call.bind("reserve", reserve.data);
  run_within(call, workspace);
}

}  // namespace ashlar::cudnn
