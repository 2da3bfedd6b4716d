#include "legacy/norm_graph.hpp"

#include "legacy/graph_helpers.hpp"
#include "legacy/tensor_descriptor.hpp"

namespace ashlar::cudnn {

bool is_relu(const NormKind& kind) {
  return kind.activation && kind.activation->mode == CUDNN_ACTIVATION_RELU;
}
bool is_identity(const NormKind& kind) {
  return !kind.activation || kind.activation->mode == CUDNN_ACTIVATION_IDENTITY;
}

void add_norm_key(Call& call, const NormKind& kind) {
  call.key(kind.per_activation).key(kind.ops);
  if (kind.activation) call.key(*kind.activation);
}

Value scalar_input(Graph& graph, const char* name, Value x) {
  return graph.scalar(name, compute_of(x.dtype()), x.dims().rank());
}

TensorSpec reserve_spec(const NormKind& kind, const TensorSpec& x) {
  TensorSpec spec;
  spec.dtype = is_relu(kind) ? boolean : compute_of(x.dtype);
  spec.dims = x.dims;
  spec.strides = packed_strides_like(x.dims, x.strides);
  return spec;
}

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

Value gradient_before_activation(Graph& graph, const NormKind& kind, Value dy,
                                 const TensorSpec& x) {
  const DType compute = compute_of(x.dtype);
  if (is_identity(kind)) return unary(graph, PointwiseMode::identity, dy, compute);
  const Value stored = add_input(graph, "reserve", reserve_spec(kind, x));
  if (is_relu(kind))
    return select(graph, stored, dy, constant_like(graph, 0.0, dy, compute), compute);
  const Value y = activated(graph, *kind.activation, stored, compute);
  return activation_gradient(graph, *kind.activation, y, dy, stored, compute);
}

void compile_within(Call& call, const std::function<void(Graph&)>& build,
                    const std::optional<Space>& workspace) {
  call.key(workspace.has_value());
  if (!workspace) {
    call.compile(build);
    return;
  }
  CompileOptions options;
  call.compile(build, options);
  const auto bytes = static_cast<std::int64_t>(workspace->bytes);
  if (call.workspace_size() <= bytes) return;
  options.workspace_limit = bytes;
  call.key(bytes).compile(build, options);
}

void run_within(Call& call, const std::optional<Space>& workspace) {
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

}  // namespace ashlar::cudnn
