// Graph-building helpers of the batch normalization calls.
#pragma once

#include <limits>

#include "legacy/call.hpp"
#include "legacy/norm_calls.hpp"

namespace ashlar::cudnn {

bool is_relu(const NormKind& kind);
bool is_identity(const NormKind& kind);  // true also without an activation
void add_norm_key(Call& call, const NormKind& kind);

// A host scalar as a graph input, so that its value is not part of the plan key.
Value scalar_input(Graph& graph, const char* name, Value x);
class HostScalar {
 public:
  explicit HostScalar(double value) : value_(value), value_f32_(static_cast<float>(value)) {}
  const void* as(DType type) const {
    return type == f64 ? static_cast<const void*>(&value_) : &value_f32_;
  }

 private:
  double value_;
  float value_f32_;
};

// Reshapes tensors so that statistics are per channel: in per-activation mode every element of a
// sample becomes a channel.
class Channels {
 public:
  Channels(Graph& graph, const NormKind& kind) : graph_(graph), flattens_(kind.per_activation) {}

  Value input(const char* name, const TensorSpec& spec) const {
    return flattened(add_input(graph_, name, spec));
  }
  Value flattened(Value value) const {
    const Dims& dims = value.dims();
    const Dims flat = {dims[0], element_count(dims) / dims[0]};
    const bool is_flat = flat[1] == dims[1];  // one element per channel
    return flattens_ && !is_flat ? graph_.reshape(value, flat) : value;
  }
  Value restored(Value value, const TensorSpec& spec) const {
    return value.dims() == spec.dims ? value : graph_.reshape(value, spec.dims);
  }
  void output(const char* name, Value value, const TensorSpec& spec) const {
    add_output(graph_, name, restored(value, spec), spec);
  }

 private:
  Graph& graph_;
  bool flattens_;
};

// The saved pre-activation data in the reserve space, in the axis order of x.
TensorSpec reserve_spec(const NormKind& kind, const TensorSpec& x);

// activation(normalized + z); stores the reserve space if requested.
Value finished(Graph& graph, const NormKind& kind, Value normalized, const TensorSpec& x,
               const std::optional<TensorSpec>& z, bool keeps);
// The gradient at the input of the activation, from dy at its output.
Value gradient_before_activation(Graph& graph, const NormKind& kind, Value dy, const TensorSpec& x);

// Compiles within the caller's workspace. The size query knows less than the call (which pointers
// are null, how results are blended), so a small workspace is not an error: the plan owns the rest.
void compile_within(Call& call, const std::function<void(Graph&)>& build,
                    const std::optional<Space>& workspace);
void run_within(Call& call, const std::optional<Space>& workspace);
inline constexpr Space kAnySpace = {nullptr, std::numeric_limits<std::int64_t>::max()};

void require_reserve(const Space& space, const NormKind& kind, const TensorSpec& x);
void require_both(const void* a, const void* b, const char* names);

}  // namespace ashlar::cudnn
