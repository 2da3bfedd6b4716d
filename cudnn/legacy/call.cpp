#include "legacy/call.hpp"

#include "core/capture.hpp"
#include "core/settings.hpp"
#include "legacy/host_scalar.hpp"

namespace ashlar::cudnn {

namespace {

std::string previous_of(std::string_view output) { return std::string(output) + ".previous"; }

}  // namespace

Call::Call(cudnnHandle_t handle, std::string_view name)
    : context_(object(handle, "handle")), key_(name, context_.device) {}

Call& Call::blend(const void* alpha, const void* beta, DType data, int pair) {
  Blend& blend = blends_.at(static_cast<std::size_t>(pair));
  blend.type = data == f64 ? f64 : f32;
  const auto blend_scalar = [&](const void* provided, double fallback) {
    const double value = provided != nullptr ? read_host_scalar(provided, blend.type) : fallback;
    return BlendScalar{value, static_cast<float>(value)};
  };
  blend.alpha = blend_scalar(alpha, 1.0);
  blend.beta = blend_scalar(beta, 0.0);
  key_.add(blend.alpha.value != 1.0).add(blend.beta.value != 0.0).add(blend.type);
  return *this;
}

Call& Call::compile(const std::function<void(Graph&)>& build) {
  CompileOptions options;
  options.workspace_limit = 0;
  return compile(build, options);
}

Call& Call::compile(const std::function<void(Graph&)>& build, const CompileOptions& options) {
  plan_ = cached_plan(key_, [&] {
    Graph graph("cudnn");
    build(graph);
    CompileOptions allowed = options;
    if (settings().forbids_tf32) allowed.allow_tf32 = false;
    return ashlar::compile(graph, context_.device, allowed);
  });
  binding_ = plan_->binding();
  const auto bind_scalar = [&](const char* name, const void* number) {
    if (plan_->graph().find_tensor(name) != kNoTensor) binding_->set(name, number);
  };
  for (const Blend& blend : blends_) {
    if (blend.alpha.value != 1.0) bind_scalar(blend.alpha_name, blend.alpha.as(blend.type));
    if (blend.beta.value != 0.0) bind_scalar(blend.beta_name, blend.beta.as(blend.type));
  }
  return *this;
}

void Call::output(Graph& graph, const std::string& name, Value value, const TensorSpec& spec,
                  int pair) {
  const Blend& blend = blends_.at(static_cast<std::size_t>(pair));
  const int rank = spec.dims.rank();
  const auto named_scalar = [&](const char* scalar) {
    const TensorId known = graph.find_tensor(scalar);
    return known != kNoTensor ? graph.value(known) : graph.scalar(scalar, blend.type, rank);
  };
  OutputSpec in_blend_type;
  in_blend_type.dtype = in_blend_type.compute = blend.type;
  const auto combined = [&](PointwiseMode mode, Value a, Value b) {
    return graph.pointwise(mode, std::array{a, b}, {}, in_blend_type);
  };
  if (blend.alpha.value != 1.0)
    value = combined(PointwiseMode::mul, value, named_scalar(blend.alpha_name));
  if (blend.beta.value != 0.0) {
    const Value previous = add_input(graph, previous_of(name), spec);
    value = combined(PointwiseMode::add, value,
                     combined(PointwiseMode::mul, previous, named_scalar(blend.beta_name)));
  }
  add_output(graph, name, value, spec);
}

Call& Call::bind(std::string_view name, BoundPointer pointer) {
  binding_->set(name, pointer);
  const bool is_blended = blends_[0].beta.value != 0.0 || blends_[1].beta.value != 0.0;
  if (is_blended)
    if (const std::string previous = previous_of(name);
        plan_->graph().find_tensor(previous) != kNoTensor)
      binding_->set(previous, pointer);
  return *this;
}

void Call::run(void* workspace, std::size_t bytes) {
  if (static_cast<std::size_t>(plan_->workspace_size()) > bytes)
    fail(CUDNN_STATUS_BAD_PARAM_SIZE_INSUFFICIENT, "workspace: got {} bytes, expected {}", bytes,
         plan_->workspace_size());
  if (is_captured(context_.device, context_.stream))
    fail(CUDNN_STATUS_NOT_SUPPORTED,
         "stream: got a stream that is being captured, expected one that is not: without a GPU "
         "only cudnnBackendExecute can be captured");
  plan_->run(*binding_, workspace, context_.stream);
}

}  // namespace ashlar::cudnn
