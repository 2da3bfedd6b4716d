#include "backend/operation_graph.hpp"

#include "backend/engine.hpp"
#include "backend/finalize.hpp"
#include "backend/operations.hpp"
#include "backend/translate/translation.hpp"
#include "core/handle.hpp"
#include "core/objects.hpp"

namespace ashlar::cudnn {

TranslatedGraph translate(std::span<const RecordRef> operations, const ShapeOverrides& overrides,
                          bool may_assume) {
  Translation translation(topological_order(operations), overrides, may_assume);
  translation.run();
  TranslatedGraph translated{translation.take_graph(), {}, translation.assumptions()};
  translated.graph.validate();
  for (const BoundUid& bound : translation.bound()) translated.uids.push_back(bound.uid);
  return translated;
}

std::optional<AttributeValue> OperationGraph::computed(cudnnBackendAttributeName_t name) const {
  if (name != CUDNN_ATTR_OPERATIONGRAPH_ENGINE_GLOBAL_COUNT) return {};
  const std::size_t count = list_strategies(graph, device_for(nullptr, *this, 0)).size();
  return std::vector<std::int64_t>{static_cast<std::int64_t>(count)};
}

FinishedRef finalize_operation_graph(const Record& record) {
  auto operation_graph = std::make_shared<OperationGraph>();
  const auto operations = record.records(CUDNN_ATTR_OPERATIONGRAPH_OPS);
  if (operations.empty())
    fail(CUDNN_STATUS_BAD_PARAM,
         "CUDNN_ATTR_OPERATIONGRAPH_OPS: got 0 operations, expected at least 1");
  operation_graph->operations.assign(operations.begin(), operations.end());
  if (record.has(CUDNN_ATTR_OPERATIONGRAPH_HANDLE)) {
    const auto handle =
        static_cast<cudnnHandle_t>(record.pointer(CUDNN_ATTR_OPERATIONGRAPH_HANDLE));
    operation_graph->device = object(handle, "CUDNN_ATTR_OPERATIONGRAPH_HANDLE").device;
  }
  TranslatedGraph translated = translate(operation_graph->operations, {});
  operation_graph->graph = std::move(translated.graph);
  operation_graph->uids = std::move(translated.uids);
  operation_graph->assumptions = std::move(translated.assumptions);
  return operation_graph;
}

}  // namespace ashlar::cudnn
