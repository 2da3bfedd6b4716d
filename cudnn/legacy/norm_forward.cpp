// Batch normalization forward: inference and training.
#include <ashlar/device.hpp>

#include "legacy/graph_helpers.hpp"
#include "legacy/norm_graph.hpp"
#include "legacy/tensor_descriptor.hpp"

namespace ashlar::cudnn {

namespace {

void prepare(Call& call, const NormTraining& norm, bool has_running, bool has_saved) {
  using Op = NormForward;
  add_norm_key(call, norm.kind);
  call.key(norm.x_spec).key(norm.y_spec).key(norm.params_spec).key(norm.stats_spec);
  if (norm.z_spec) call.key(*norm.z_spec);
  call.key(has_running).key(has_saved).blend(norm.alpha, norm.beta, norm.y_spec.dtype);
  const auto build = [&](Graph& graph) {
    const DType compute = compute_of(norm.x_spec.dtype);
    const Channels channels(graph, norm.kind);
    Op op;
    op.mode = NormMode::batch;
    const Value x = channels.input("x", norm.x_spec);
    std::vector<Operand<Op>> operands = {{Op::x, x},
                                         {Op::scale, channels.input("scale", norm.params_spec)},
                                         {Op::bias, channels.input("bias", norm.params_spec)},
                                         {Op::epsilon_tensor, scalar_input(graph, "epsilon", x)}};
    std::vector<Wanted<Op>> wanted = {{Op::y, compute}};
    if (has_saved) {
      wanted.push_back(Op::out_mean);
      wanted.push_back(Op::out_inv_variance);
    }
    if (has_running) {
      operands.push_back({Op::running_mean, channels.input("running_mean", norm.stats_spec)});
      operands.push_back({Op::running_var, channels.input("running_variance", norm.stats_spec)});
      operands.push_back({Op::momentum_tensor, scalar_input(graph, "momentum", x)});
      wanted.push_back(Op::next_running_mean);
      wanted.push_back(Op::next_running_var);
    }
    const auto out = graph.apply(op, operands, wanted);
    if (has_saved) {
      channels.output("saved_mean", out[Op::out_mean], norm.stats_spec);
      channels.output("saved_inv_std", out[Op::out_inv_variance], norm.stats_spec);
    }
    if (has_running) {
      channels.output("next_running_mean", out[Op::next_running_mean], norm.stats_spec);
      channels.output("next_running_variance", out[Op::next_running_var], norm.stats_spec);
    }
    const Value y = finished(graph, norm.kind, channels.restored(out[Op::y], norm.x_spec),
                             norm.x_spec, norm.z_spec, true);
    call.output(graph, "y", y, norm.y_spec);
  };
  compile_within(call, build, norm.workspace);
}

}  // namespace

void NormInference::run(cudnnHandle_t handle) const {
  required(x, "x"), required(y, "y"), required(scale, "scale"), required(bias, "bias");
  required(mean, "estimatedMean"), required(variance, "estimatedVariance");
  if (z_spec) required(z, "z");
  using Op = NormForward;
  Call call(handle, "norm_inference");
  add_norm_key(call, kind);
  call.key(x_spec).key(y_spec).key(params_spec).key(stats_spec);
  if (z_spec) call.key(*z_spec);
  call.blend(alpha, beta, y_spec.dtype);
  call.compile([&](Graph& graph) {
    const Channels channels(graph, kind);
    Op op;
    op.mode = NormMode::batch;
    op.phase = NormPhase::inference;
    const Value normed = channels.input("x", x_spec);
    const auto out = graph.apply(op,
                                 {{Op::x, normed},
                                  {Op::epsilon_tensor, scalar_input(graph, "epsilon", normed)},
                                  {Op::scale, channels.input("scale", params_spec)},
                                  {Op::bias, channels.input("bias", params_spec)},
                                  {Op::running_mean, channels.input("mean", stats_spec)},
                                  {Op::running_var, channels.input("variance", stats_spec)}},
                                 {{Op::y, compute_of(x_spec.dtype)}});
    call.output(graph, "y",
                finished(graph, kind, channels.restored(out[Op::y], x_spec), x_spec, z_spec, false),
                y_spec);
  });
  call.bind("x", x).bind("y", y).bind("scale", scale).bind("bias", bias);
  const HostScalar epsilon(kind.epsilon);
  call.bind("mean", mean).bind("variance", variance);
  call.bind("epsilon", epsilon.as(compute_of(x_spec.dtype)));
  if (z_spec) call.bind("z", z);
  call.run();
}

std::size_t NormTraining::workspace_bytes(cudnnHandle_t handle) const {
  NormTraining fullest = *this;
  fullest.alpha = fullest.beta = nullptr;
  fullest.workspace = kAnySpace;
  Call call(handle, "norm_training");
  prepare(call, fullest, true, true);
  return static_cast<std::size_t>(call.workspace_size());
}

void NormTraining::run(cudnnHandle_t handle) const {
  require_both(running_mean, running_variance, "resultRunningMean and resultRunningVariance");
  require_both(saved_mean, saved_inv_std, "resultSaveMean and resultSaveInvVariance");
  required(x, "x"), required(y, "y"), required(scale, "scale"), required(bias, "bias");
  if (z_spec) required(z, "z");
  require_reserve(reserve, kind, x_spec);

  Call call(handle, "norm_training");
  prepare(call, *this, running_mean != nullptr, saved_mean != nullptr);
  const HostScalar epsilon(kind.epsilon), factor(momentum);
  const DType compute = compute_of(x_spec.dtype);
  call.bind("x", x).bind("y", y).bind("scale", scale).bind("bias", bias);
  call.bind("epsilon", epsilon.as(compute));
  if (z_spec) call.bind("z", z);
  if (running_mean != nullptr) {
    // Running statistics are updated in place: every element is read before it is written. With an
    // averaging factor of 1 the old values are not read and may be NaN.
    if (momentum == 1.0)
      for (void* running : {running_mean, running_variance})
        call.device().enqueue_fill(running, std::byte{0}, byte_size(stats_spec), call.stream());
    call.bind("running_mean", running_mean).bind("next_running_mean", running_mean);
    call.bind("running_variance", running_variance).bind("next_running_variance", running_variance);
    call.bind("momentum", factor.as(compute));
  }
  if (saved_mean != nullptr)
    call.bind("saved_mean", saved_mean).bind("saved_inv_std", saved_inv_std);
  if (!is_identity(kind)) call.bind("reserve", reserve.data);
  run_within(call, workspace);
}

}  // namespace ashlar::cudnn
