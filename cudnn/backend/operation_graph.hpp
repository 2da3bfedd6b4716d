// OPERATIONGRAPH descriptors, translated to an ashlar::Graph.
#pragma once

#include <ashlar/device.hpp>
#include <ashlar/graph.hpp>
#include <optional>
#include <vector>

#include "backend/record.hpp"
#include "backend/translate/translation.hpp"

namespace ashlar::cudnn {

struct OperationGraph : Finished {
  Graph graph;
  // Variant-pack uids of the graph's bound tensors, in the order of Graph::bound_tensors().
  std::vector<std::int64_t> uids;
  std::vector<Assumption> assumptions;
  std::vector<RecordRef> operations;
  std::optional<Device> device;  // of the handle, if one was set
  std::optional<AttributeValue> computed(cudnnBackendAttributeName_t name) const override;
};

// The operations translated with overridden shapes.
struct TranslatedGraph {
  Graph graph;
  std::vector<std::int64_t> uids;
  std::vector<Assumption> assumptions;
};
TranslatedGraph translate(std::span<const RecordRef> operations, const ShapeOverrides& overrides,
                          bool may_assume = true);

}  // namespace ashlar::cudnn
