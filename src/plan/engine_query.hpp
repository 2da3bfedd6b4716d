// What lowering passes ask a device's engines before they raise, expand or lay out an operation.
#pragma once

#include "plan/engine.hpp"

namespace ashlar {

class EngineQuery {
 public:
  // Without a table every node is taken: lowering then does not depend on a device.
  EngineQuery() = default;
  EngineQuery(EngineTable table, const DeviceProps& device) : table_(table), device_(&device) {}

  // Whether a specialised engine takes the node as a region of its own, with its operands in memory
  // of their own.
  bool has_fast_engine(const Graph& graph, const Node& node) const;

 private:
  EngineTable table_ = {};
  const DeviceProps* device_ = nullptr;
};

}  // namespace ashlar
