// An operation graph, translated.
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
  // The uid of the variant pack for every bound tensor of the graph, in their order.
  std::vector<std::int64_t> uids;
  std::vector<Assumption> assumptions;
  std::vector<RecordRef> operations;
  std::optional<Device> device;  // of the handle, where one was given
  std::optional<AttributeValue> computed(cudnnBackendAttributeName_t name) const override;
};

// The operations as a graph, with these extents in place of those of the descriptors.
struct TranslatedGraph {
  Graph graph;
  std::vector<std::int64_t> uids;
  std::vector<Assumption> assumptions;
};
TranslatedGraph translate(std::span<const RecordRef> operations, const ShapeOverrides& overrides,
                          bool may_assume = true);

}  // namespace ashlar::cudnn
