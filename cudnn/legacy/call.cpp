#include "legacy/call.hpp"

namespace ashlar::cudnn {

namespace {

double read_number(const void* number, DType type, double fallback) {
  if (number == nullptr) return fallback;
  return type == f64 ? *static_cast<const double*>(number)
                     : static_cast<double>(*static_cast<const float*>(number));
}

std::string previous_of(std::string_view output) { return std::string(output) + ".previous"; }

}  // namespace

Call::Call(cudnnHandle_t handle, std::string_view name)
    : context_(object(handle, "handle")), key_(name, context_.device) {}

Call& Call::blend(const void* alpha, const void* beta, DType data) {
  blend_type_ = data == f64 ? f64 : f32;
  alpha_ = read_number(alpha, blend_type_, 1.0);
  beta_ = read_number(beta, blend_type_, 0.0);
  alpha_f32_ = static_cast<float>(alpha_);
  beta_f32_ = static_cast<float>(beta_);
  key_.add(alpha_ != 1.0).add(beta_ != 0.0).add(blend_type_);
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
    return ashlar::compile(graph, context_.device, options);
  });
  binding_ = plan_->binding();
  const bool is_double = blend_type_ == f64;
  if (alpha_ != 1.0)
    binding_->set("alpha", is_double ? static_cast<const void*>(&alpha_) : &alpha_f32_);
  if (beta_ != 0.0)
    binding_->set("beta", is_double ? static_cast<const void*>(&beta_) : &beta_f32_);
  return *this;
}

void Call::output(Graph& graph, const std::string& name, Value value, const TensorSpec& spec) {
  const int rank = spec.dims.rank();
  const auto named_scalar = [&](const char* scalar) {
    const TensorId known = graph.find_tensor(scalar);
    return known != kNoTensor ? graph.value(known) : graph.scalar(scalar, blend_type_, rank);
  };
  Result in_blend_type;
  in_blend_type.dtype = in_blend_type.compute = blend_type_;
  const auto combined = [&](PointwiseMode mode, Value a, Value b) {
    return graph.pointwise(mode, std::array{a, b}, {}, in_blend_type);
  };
  if (alpha_ != 1.0) value = combined(PointwiseMode::mul, value, named_scalar("alpha"));
  if (beta_ != 0.0) {
    const Value previous = add_input(graph, previous_of(name), spec);
    value = combined(PointwiseMode::add, value,
                     combined(PointwiseMode::mul, previous, named_scalar("beta")));
  }
  add_output(graph, name, value, spec);
}

Call& Call::bind(std::string_view name, const void* pointer) {
  binding_->set(name, pointer);
  if (beta_ != 0.0)
    if (const std::string previous = previous_of(name);
        plan_->graph().find_tensor(previous) != kNoTensor)
      binding_->set(previous, pointer);
  return *this;
}

void Call::run(void* workspace, std::size_t bytes) {
  if (static_cast<std::size_t>(plan_->workspace_size()) > bytes)
    fail(CUDNN_STATUS_BAD_PARAM_SIZE_INSUFFICIENT, "workspace: got {} bytes, expected {}", bytes,
         plan_->workspace_size());
  plan_->run(*binding_, workspace, context_.stream);
}

}  // namespace ashlar::cudnn
