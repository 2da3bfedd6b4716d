// gradients(): walks the nodes from the last to the first and applies the rule of each
// (OpTraits::gradient).
#include <ashlar/gradients.hpp>

#include "base/fail.hpp"
#include "graph/gradient_context.hpp"

namespace ashlar {

namespace {

bool is_differentiable(const Tensor& tensor) {
  return is_floating(tensor.dtype) && !is_complex(tensor.dtype);
}

// Marks every tensor that depends on a value of `wrt` through floating-point tensors.
void mark_active(const Graph& graph, GradientState& state) {
  for (const Node& node : graph.nodes()) {
    bool active = false;
    for (const TensorId id : node.inputs)
      active = active || (id != kNoTensor && state.active[static_cast<std::size_t>(id)]);
    for (const TensorId id : node.outputs)
      if (active && id != kNoTensor && is_differentiable(graph.tensor(id)))
        state.active[static_cast<std::size_t>(id)] = true;
  }
}

// The gradient of `of[i]` with respect to itself.
Value first_cotangent(Graph& graph, Value of, Value given) {
  const Tensor& tensor = of.tensor();
  if (!is_differentiable(tensor))
    fail(ErrorCode::invalid_argument, "gradients: of '{}': got dtype {}, expected a floating type",
         tensor.name, to_string(tensor.dtype));
  if (!given) {
    for (const std::int64_t extent : tensor.dims)
      if (extent != 1)
        fail(ErrorCode::invalid_argument,
             "gradients: of '{}': got dims {} and no cotangent, expected one element or a "
             "cotangent",
             tensor.name, to_string(tensor.dims));
    return graph.constant(1.0, tensor.dtype, tensor.dims.rank());
  }
  if (given.dims() != tensor.dims)
    fail(ErrorCode::invalid_argument, "gradients: cotangent of '{}': got dims {}, expected {}",
         tensor.name, to_string(given.dims()), to_string(tensor.dims));
  return given;
}

void apply_rules(Graph& graph, GradientState& state) {
  const GraphData& data = GraphAccess::data(graph);
  for (auto id = static_cast<NodeId>(data.nodes.size()); id-- > 0;) {
    const Node& node = data.nodes[static_cast<std::size_t>(id)];
    bool reached = false, active = false;
    for (const TensorId output : node.outputs)
      reached = reached ||
                (output != kNoTensor && !state.terms[static_cast<std::size_t>(output)].empty());
    for (const TensorId input : node.inputs)
      active = active || (input != kNoTensor && state.active[static_cast<std::size_t>(input)]);
    if (!reached || !active) continue;
    GradientContext context(graph, id, state);
    const auto rule = traits_of(node.op).gradient;
    if (rule == nullptr) context.refuse("this operation has no rule");
    rule(context);
  }
}

}  // namespace

std::vector<Value> gradients(Graph& graph, std::span<const Value> of, std::span<const Value> wrt,
                             const GradientOptions& options) {
  for (const Value value : of) GraphAccess::require_own(graph, value, "gradients: of");
  for (const Value value : wrt) GraphAccess::require_own(graph, value, "gradients: wrt");
  for (const Value value : options.cotangents)
    if (value) GraphAccess::require_own(graph, value, "gradients: cotangents");
  if (options.cotangents.size() > of.size())
    fail(ErrorCode::invalid_argument, "gradients: cotangents: got {}, expected at most {}",
         options.cotangents.size(), of.size());
  if (options.dtype && !is_floating(*options.dtype))
    fail(ErrorCode::invalid_argument, "gradients: dtype: got {}, expected a floating type",
         to_string(*options.dtype));

  GraphData& data = GraphAccess::data(graph);
  const GraphData before = data;
  try {
    const std::size_t tensors = data.tensors.size();
    GradientState state{std::vector<std::vector<Value>>(tensors), std::vector<bool>(tensors),
                        std::vector<bool>(tensors), options.dtype};
    for (const Value value : wrt) {
      if (!is_differentiable(value.tensor()))
        fail(ErrorCode::invalid_argument,
             "gradients: wrt '{}': got dtype {}, expected a floating type", value.tensor().name,
             to_string(value.dtype()));
      state.active[static_cast<std::size_t>(value.id())] = true;
      state.is_result[static_cast<std::size_t>(value.id())] = true;
    }
    mark_active(graph, state);
    for (std::size_t i = 0; i < of.size(); ++i) {
      const Value given = i < options.cotangents.size() ? options.cotangents[i] : Value();
      const Value cotangent = first_cotangent(graph, of[i], given);
      auto& terms = state.terms[static_cast<std::size_t>(of[i].id())];
      if (terms.empty())
        terms.push_back(cotangent);
      else
        terms.front() = terms.front() + cotangent;
    }
    apply_rules(graph, state);
    std::vector<Value> results;
    for (const Value value : wrt) {
      const auto& terms = state.terms[static_cast<std::size_t>(value.id())];
      results.push_back(terms.empty() ? Value() : terms.front());
    }
    return results;
  } catch (...) {
    data = before;
    throw;
  }
}

}  // namespace ashlar
