#include "legacy/norm_calls.hpp"

#include <ashlar/runtime.hpp>
#include <limits>

#include "legacy/call.hpp"
#include "legacy/graph_parts.hpp"
#include "legacy/tensor_descriptor.hpp"

namespace ashlar::cudnn {

namespace {

bool is_relu(const NormKind& kind) {
  return kind.activation && kind.activation->mode == CUDNN_ACTIVATION_RELU;
}
bool is_identity(const NormKind& kind) {
  return !kind.activation || kind.activation->mode == CUDNN_ACTIVATION_IDENTITY;
}

void add_to_key(Call& call, const NormKind& kind) {
  call.key(kind.per_activation).key(kind.ops);
  if (kind.activation) call.key(*kind.activation);
}

// A number a call gives on the host, by its name; not a part of the plan.
Value number(Graph& graph, const char* name, Value x) {
  return graph.scalar(name, compute_of(x.dtype()), x.dims().rank());
}
class Number {
 public:
  explicit Number(double value) : value_(value), value_f32_(static_cast<float>(value)) {}
  const void* as(DType type) const {
    return type == f64 ? static_cast<const void*>(&value_) : &value_f32_;
  }

 private:
  double value_;
  float value_f32_;
};

// Parameters and statistics have one number per channel; with one per element of a sample, every
// element is a channel.
class Channels {
 public:
  Channels(Graph& graph, const NormKind& kind) : graph_(graph), flattens_(kind.per_activation) {}

  Value input(const char* name, const TensorSpec& spec) const {
    const Value value = add_input(graph_, name, spec);
    return flattens_ ? flattened(value) : value;
  }
  Value flattened(Value value) const {
    const Dims& dims = value.dims();
    return flattens_ ? graph_.reshape(value, {dims[0], element_count(dims) / dims[0]}) : value;
  }
  Value restored(Value value, const TensorSpec& spec) const {
    return flattens_ ? graph_.reshape(value, spec.dims) : value;
  }
  void output(const char* name, Value value, const TensorSpec& spec) const {
    add_output(graph_, name, restored(value, spec), spec);
  }

 private:
  Graph& graph_;
  bool flattens_;
};

// What is kept of the values u that go into the activation, in x's order of axes.
TensorSpec reserve_spec(const NormKind& kind, const TensorSpec& x) {
  TensorSpec spec;
  spec.dtype = is_relu(kind) ? boolean : compute_of(x.dtype);
  spec.dims = x.dims;
  spec.strides = packed_strides_like(x.dims, x.strides);
  return spec;
}

// activation(normalized + z), keeping what the gradient needs.
Value finished(Graph& graph, const NormKind& kind, Value normalized, const TensorSpec& x,
               const std::optional<TensorSpec>& z, bool keeps) {
  if (kind.ops == NormOps::norm) return normalized;
  const DType compute = compute_of(x.dtype);
  Value u = normalized;
  if (kind.ops == NormOps::add_activation)
    u = binary(graph, PointwiseMode::add, u, add_input(graph, "z", *z), compute);
  if (keeps && is_relu(kind)) {
    const Value is_positive = graph.pointwise(PointwiseMode::cmp_gt,
                                              std::array{u, constant_like(graph, 0.0, u, compute)});
    add_output(graph, "reserve", is_positive, reserve_spec(kind, x));
  } else if (keeps && !is_identity(kind)) {
    add_output(graph, "reserve", u, reserve_spec(kind, x));
  }
  return activated(graph, *kind.activation, u, compute);
}

// The gradient of what went into the activation, from that of what came out.
Value gradient_before_activation(Graph& graph, const NormKind& kind, Value dy,
                                 const TensorSpec& x) {
  const DType compute = compute_of(x.dtype);
  if (is_identity(kind)) return unary(graph, PointwiseMode::identity, dy, compute);
  const Value kept = add_input(graph, "reserve", reserve_spec(kind, x));
  if (is_relu(kind))
    return select(graph, kept, dy, constant_like(graph, 0.0, dy, compute), compute);
  const Value y = activated(graph, *kind.activation, kept, compute);
  return activation_gradient(graph, *kind.activation, y, dy, kept, compute);
}

// Compiles for the workspace a caller gave, which has to be as large as the query said. A plan that
// needs more than that one (for a blend, say) owns what does not fit.
void compile_within(Call& call, const std::function<void(Graph&)>& build,
                    const std::optional<Space>& workspace,
                    const std::function<std::size_t()>& query) {
  call.key(workspace.has_value());
  if (!workspace) {
    call.compile(build);
    return;
  }
  CompileOptions options;
  call.compile(build, options);
  const auto bytes = static_cast<std::int64_t>(workspace->bytes);
  if (call.workspace_size() <= bytes) return;
  if (const std::size_t expected = query(); workspace->bytes < expected)
    fail(CUDNN_STATUS_BAD_PARAM_SIZE_INSUFFICIENT, "workSpaceSizeInBytes: got {}, expected {}",
         workspace->bytes, expected);
  options.workspace_limit = bytes;
  call.key(bytes).compile(build, options);
}

void run(Call& call, const std::optional<Space>& workspace) {
  const Space space = workspace.value_or(Space{});
  if (call.workspace_size() > 0) required(space.data, "workSpace");
  call.run(space.data, space.bytes);
}

void require_reserve(const Space& space, const NormKind& kind, const TensorSpec& x) {
  const std::size_t bytes = norm_reserve_bytes(kind, x);
  if (bytes == 0) return;
  required(space.data, "reserveSpace");
  if (space.bytes < bytes)
    fail(CUDNN_STATUS_BAD_PARAM_SIZE_INSUFFICIENT, "reserveSpaceSizeInBytes: got {}, expected {}",
         space.bytes, bytes);
}

void require_both(const void* a, const void* b, const char* names) {
  if ((a == nullptr) != (b == nullptr))
    fail(CUDNN_STATUS_BAD_PARAM, "{}: got one of them, expected both or neither", names);
}

void prepare(Call& call, const NormTraining& norm, bool has_running, bool has_saved,
             const std::function<std::size_t()>& query) {
  using Op = NormForward;
  add_to_key(call, norm.kind);
  call.key(norm.x_spec).key(norm.y_spec).key(norm.params_spec).key(norm.stats_spec);
  if (norm.z_spec) call.key(*norm.z_spec);
  call.key(has_running).key(has_saved).blend(norm.alpha, norm.beta, norm.y_spec.dtype);
  const auto build = [&](Graph& graph) {
    const DType compute = compute_of(norm.x_spec.dtype);
    const Channels channels(graph, norm.kind);
    Op op;
    op.mode = NormMode::batch;
    const Value x = channels.input("x", norm.x_spec);
    std::vector<Operand> operands = {{Op::x, x},
                                     {Op::scale, channels.input("scale", norm.params_spec)},
                                     {Op::bias, channels.input("bias", norm.params_spec)},
                                     {Op::epsilon_tensor, number(graph, "epsilon", x)}};
    std::vector<Wanted> wanted = {{Op::y, compute}};
    if (has_saved) {
      wanted.push_back(Op::out_mean);
      wanted.push_back(Op::out_inv_variance);
    }
    if (has_running) {
      operands.push_back({Op::running_mean, channels.input("running_mean", norm.stats_spec)});
      operands.push_back({Op::running_var, channels.input("running_variance", norm.stats_spec)});
      operands.push_back({Op::momentum_tensor, number(graph, "momentum", x)});
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
  compile_within(call, build, norm.workspace, query);
}

void prepare(Call& call, const NormGradient& norm, bool has_saved,
             const std::function<std::size_t()>& query) {
  using Op = NormBackward;
  add_to_key(call, norm.kind);
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
    std::vector<Operand> operands = {{Op::x, x},
                                     {Op::dy, channels.flattened(dy)},
                                     {Op::scale, channels.input("scale", norm.params_spec)}};
    if (has_saved) {
      operands.push_back({Op::mean, channels.input("saved_mean", norm.stats_spec)});
      operands.push_back({Op::inv_variance, channels.input("saved_inv_std", norm.stats_spec)});
    } else {
      operands.push_back({Op::epsilon_tensor, number(graph, "epsilon", x)});
    }
    const auto out = graph.apply(op, operands, {{Op::dx, compute}, Op::dscale, Op::dbias});
    const auto blended = [&](const char* name, Value value, const TensorSpec& spec, int pair) {
      call.output(graph, name, channels.restored(value, spec), spec, pair);
    };
    blended("dx", out[Op::dx], norm.dx_spec, 0);
    blended("dscale", out[Op::dscale], norm.params_spec, 1);
    blended("dbias", out[Op::dbias], norm.params_spec, 1);
  };
  compile_within(call, build, norm.workspace, query);
}

// For queries.
constexpr Space kAnySpace = {nullptr, std::numeric_limits<std::int64_t>::max()};

}  // namespace

NormKind norm_kind(bool per_activation, int ops, cudnnActivationDescriptor_t activation,
                   double epsilon) {
  NormKind kind;
  kind.per_activation = per_activation;
  if (ops < 0 || ops > static_cast<int>(NormOps::add_activation))
    fail(CUDNN_STATUS_BAD_PARAM, "ops: got {}, expected 0 to 2", ops);
  kind.ops = static_cast<NormOps>(ops);
  if (kind.ops != NormOps::norm) kind.activation = activation_of(activation, "activationDesc");
  if (!(epsilon >= CUDNN_BN_MIN_EPSILON))
    fail(CUDNN_STATUS_BAD_PARAM, "epsilon: got {}, expected at least {}", epsilon,
         CUDNN_BN_MIN_EPSILON);
  kind.epsilon = epsilon;
  return kind;
}

TensorSpec derived_norm_spec(const TensorSpec& x, bool per_activation) {
  if (x.dims.rank() < 2)
    fail(CUDNN_STATUS_BAD_PARAM, "xDesc.dims: got {}, expected a batch and channels",
         to_string(x.dims));
  TensorSpec spec;
  spec.dtype = x.dtype == f64 ? f64 : f32;
  spec.dims = per_activation ? x.dims : Dims::filled(x.dims.rank(), 1);
  spec.dims[0] = 1;
  spec.dims[1] = x.dims[1];
  spec.strides = row_major.strides_for(spec.dims);
  return spec;
}

std::optional<TensorSpec> added_spec(const NormKind& kind, const TensorSpec& x,
                                     cudnnTensorDescriptor_t descriptor, const char* name) {
  if (kind.ops != NormOps::add_activation) return std::nullopt;
  const TensorSpec spec = spec_of(descriptor, name);
  require_same_dims(x, "xDesc", spec, name);
  return spec;
}

void require_parameters(const NormKind& kind, const TensorSpec& x, const TensorSpec& other,
                        const char* name) {
  const Dims expected = derived_norm_spec(x, kind.per_activation).dims;
  if (other.dims != expected)
    fail(CUDNN_STATUS_BAD_PARAM, "{}.dims: got {}, expected {}, derived from xDesc", name,
         to_string(other.dims), to_string(expected));
}

std::size_t norm_reserve_bytes(const NormKind& kind, const TensorSpec& x) {
  if (is_identity(kind)) return 0;
  return static_cast<std::size_t>(byte_size(reserve_spec(kind, x)));
}

void NormInference::run(cudnnHandle_t handle) const {
  required(x, "x"), required(y, "y"), required(scale, "scale"), required(bias, "bias");
  required(mean, "estimatedMean"), required(variance, "estimatedVariance");
  if (z_spec) required(z, "z");
  using Op = NormForward;
  Call call(handle, "norm_inference");
  add_to_key(call, kind);
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
                                  {Op::epsilon_tensor, number(graph, "epsilon", normed)},
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
  const Number epsilon(kind.epsilon);
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
  prepare(call, fullest, true, true, {});
  return static_cast<std::size_t>(call.workspace_size());
}

void NormTraining::run(cudnnHandle_t handle) const {
  require_both(running_mean, running_variance, "resultRunningMean and resultRunningVariance");
  require_both(saved_mean, saved_inv_std, "resultSaveMean and resultSaveInvVariance");
  required(x, "x"), required(y, "y"), required(scale, "scale"), required(bias, "bias");
  if (z_spec) required(z, "z");
  require_reserve(reserve, kind, x_spec);

  Call call(handle, "norm_training");
  prepare(call, *this, running_mean != nullptr, saved_mean != nullptr,
          [&] { return workspace_bytes(handle); });
  const Number epsilon(kind.epsilon), factor(momentum);
  const DType compute = compute_of(x_spec.dtype);
  call.bind("x", x).bind("y", y).bind("scale", scale).bind("bias", bias);
  call.bind("epsilon", epsilon.as(compute));
  if (z_spec) call.bind("z", z);
  if (running_mean != nullptr) {
    // Every element is read before it is written. With a factor of 1 the old ones do not count and
    // may be anything, also NaN.
    if (momentum == 1.0)
      for (void* running : {running_mean, running_variance})
        fill(call.device(), running, std::byte{0}, byte_size(stats_spec), call.stream());
    call.bind("running_mean", running_mean).bind("next_running_mean", running_mean);
    call.bind("running_variance", running_variance).bind("next_running_variance", running_variance);
    call.bind("momentum", factor.as(compute));
  }
  if (saved_mean != nullptr)
    call.bind("saved_mean", saved_mean).bind("saved_inv_std", saved_inv_std);
  if (!is_identity(kind)) call.bind("reserve", reserve.data);
  cudnn::run(call, workspace);
}

std::size_t NormGradient::workspace_bytes(cudnnHandle_t handle) const {
  NormGradient fullest = *this;
  fullest.alpha_data = fullest.beta_data = fullest.alpha_params = fullest.beta_params = nullptr;
  fullest.workspace = kAnySpace;
  Call call(handle, "norm_gradient");
  prepare(call, fullest, true, {});
  return static_cast<std::size_t>(call.workspace_size());
}

void NormGradient::run(cudnnHandle_t handle) const {
  require_both(saved_mean, saved_inv_std, "savedMean and savedInvVariance");
  required(x, "x"), required(dy, "dy"), required(dx, "dx"), required(scale, "scale");
  required(dscale, "dScale"), required(dbias, "dBias");
  if (dz_spec) required(dz, "dz");
  require_reserve(reserve, kind, x_spec);

  Call call(handle, "norm_gradient");
  prepare(call, *this, saved_mean != nullptr, [&] { return workspace_bytes(handle); });
  call.bind("x", x).bind("dy", dy).bind("dx", dx).bind("scale", scale);
  call.bind("dscale", dscale).bind("dbias", dbias);
  const Number epsilon(kind.epsilon);
  if (dz_spec) call.bind("dz", dz);
  if (saved_mean != nullptr)
    call.bind("saved_mean", saved_mean).bind("saved_inv_std", saved_inv_std);
  else
    call.bind("epsilon", epsilon.as(compute_of(x_spec.dtype)));
  if (!is_identity(kind)) call.bind("reserve", reserve.data);
  cudnn::run(call, workspace);
}

}  // namespace ashlar::cudnn
