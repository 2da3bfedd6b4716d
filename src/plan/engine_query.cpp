#include "plan/engine_query.hpp"

#include <algorithm>
#include <map>

#include "graph/graph_data.hpp"
#include "plan/partition.hpp"

namespace ashlar {

namespace {

// A graph of this node alone, whose operands are inputs and whose results are outputs.
LoweredGraph isolated(const Graph& graph, const Node& node) {
  LoweredGraph lowered{Graph("isolated"), {}, {}};
  GraphData& data = GraphAccess::data(lowered.graph);
  std::map<TensorId, TensorId> known;
  const auto add = [&](auto& self, TensorId id, TensorKind kind) -> TensorId {
    if (id == kNoTensor) return kNoTensor;
    if (const auto found = known.find(id); found != known.end()) return found->second;
    Tensor tensor = graph.tensor(id);
    tensor.ragged_offset = self(self, tensor.ragged_offset, TensorKind::input);
    if (tensor.kind != TensorKind::constant && tensor.kind != TensorKind::scalar)
      tensor.kind = kind;
    const auto copy = static_cast<TensorId>(data.tensors.size());
    data.tensors.push_back(std::move(tensor));
    data.producers.push_back(kind == TensorKind::output ? 0 : kNoNode);
    known.emplace(id, copy);
    return copy;
  };
  Node copy = node;
  for (TensorId& id : copy.inputs) id = add(add, id, TensorKind::input);
  for (TensorId& id : copy.outputs) id = add(add, id, TensorKind::output);
  data.nodes.push_back(std::move(copy));
  for (std::size_t i = 0; i < data.tensors.size(); ++i)
    lowered.views.push_back(view_of(lowered.graph, static_cast<TensorId>(i)));
  return lowered;
}

}  // namespace

bool EngineQuery::has_fast_engine(const Graph& graph, const Node& node) const {
  if (table_.empty()) return true;
  const LoweredGraph lowered = isolated(graph, node);
  const std::vector<Region> regions = partition(lowered, {FusionLimits{false, false}});
  return std::ranges::any_of(table_, [&](const Engine* engine) {
    return !is_last_resort(engine->kind()) && engine->supports(regions[0], *device_);
  });
}

}  // namespace ashlar
