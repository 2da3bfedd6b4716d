// ENGINEHEUR descriptors: engine configurations for a graph, best first. Nothing is compiled.
#include "backend/engine.hpp"
#include "backend/finalize.hpp"

namespace ashlar::cudnn {

std::optional<AttributeValue> Heuristics::computed(cudnnBackendAttributeName_t name) const {
  if (name == CUDNN_ATTR_ENGINEHEUR_RESULTS) return results;
  return {};
}

// Modes A, B and INSTANT return every strategy, then the first one again without a workspace if it
// uses one. FALLBACK returns the configurations without a workspace: the first strategy and the
// reference engine.
FinishedRef finalize_heuristics(const Record& record) {
  const RecordRef graph_record = record.reference(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH);
  const auto& graph = finished<OperationGraph>(*graph_record);
  const Device device = device_for(record.record_or_null(CUDNN_ATTR_ENGINEHEUR_DEVICEPROP), graph,
                                   record.integer_or(CUDNN_ATTR_ENGINEHEUR_SM_COUNT_TARGET, 0));
  const bool is_fallback = record.integer(CUDNN_ATTR_ENGINEHEUR_MODE) == CUDNN_HEUR_MODE_FALLBACK;
  auto heuristics = std::make_shared<Heuristics>();
  std::vector<Strategy> strategies = list_strategies(graph.graph, device);
  const bool first_needs_workspace = strategies.front().outline.workspace_size > 0;
  std::vector<RecordRef> engines;
  for (std::size_t i = 0; i < strategies.size(); ++i)
    engines.push_back(make_engine_record(graph_record, static_cast<std::int64_t>(i), device,
                                         std::move(strategies[i])));
  if (!is_fallback)
    for (const RecordRef& engine : engines)
      heuristics->results.push_back(make_config_record(engine, 1));
  if (is_fallback || first_needs_workspace)
    heuristics->results.push_back(make_config_record(engines.front(), 0));
  if (is_fallback && engines.size() > 1)
    heuristics->results.push_back(make_config_record(engines.back(), 0));
  return heuristics;
}

}  // namespace ashlar::cudnn
