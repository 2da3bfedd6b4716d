// ENGINEHEUR descriptors: engine configurations for a graph, best first. Nothing is compiled.
#include <algorithm>

#include "backend/engine.hpp"
#include "backend/finalize.hpp"

namespace ashlar::cudnn {

namespace {

// Clients that autotune (PyTorch's benchmark mode) run every configuration they get: a plan that is
// estimated to take 100 times as long as the fastest would cost them minutes and never wins.
constexpr double kMaxSlowdown = 100.0;

double fastest(const std::vector<Strategy>& strategies) {
  return std::ranges::min(strategies, {}, [](const Strategy& s) { return s.outline.seconds; })
      .outline.seconds;
}

}  // namespace

std::optional<AttributeValue> Heuristics::computed(cudnnBackendAttributeName_t name) const {
  if (name == CUDNN_ATTR_ENGINEHEUR_RESULTS) return results;
  return {};
}

// Modes A, B and INSTANT return every strategy, then the first one again without a workspace if it
// uses one. FALLBACK returns the configurations without a workspace: the first strategy and the
// reference engine. All but the first strategy are left out where they are too slow to offer.
FinishedRef finalize_heuristics(const Record& record) {
  const RecordRef graph_record = record.reference(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH);
  const auto& graph = finished<OperationGraph>(*graph_record);
  const Device device = device_for(record.record_or_null(CUDNN_ATTR_ENGINEHEUR_DEVICEPROP), graph,
                                   record.integer_or(CUDNN_ATTR_ENGINEHEUR_SM_COUNT_TARGET, 0));
  const bool is_fallback = record.integer(CUDNN_ATTR_ENGINEHEUR_MODE) == CUDNN_HEUR_MODE_FALLBACK;
  std::vector<Strategy> strategies = list_strategies(graph.graph, device);
  const double limit = kMaxSlowdown * fastest(strategies);
  auto heuristics = std::make_shared<Heuristics>();
  const auto offer = [&](std::size_t index, int uses_workspace) {
    if (index > 0 && strategies[index].outline.seconds > limit) return;
    heuristics->results.push_back(
        make_config_record(make_engine_record(graph_record, static_cast<std::int64_t>(index),
                                              device, strategies[index]),
                           uses_workspace));
  };
  if (!is_fallback)
    for (std::size_t i = 0; i < strategies.size(); ++i) offer(i, 1);
  if (is_fallback || strategies.front().outline.workspace_size > 0) offer(0, 0);
  if (is_fallback && strategies.size() > 1) offer(strategies.size() - 1, 0);
  return heuristics;
}

}  // namespace ashlar::cudnn
