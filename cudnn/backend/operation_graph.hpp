// An operation graph, translated.
#pragma once

#include <ashlar/device.hpp>
#include <ashlar/graph.hpp>
#include <optional>

#include "backend/record.hpp"

namespace ashlar::cudnn {

struct OperationGraph : Finished {
  Graph graph;
  std::optional<Device> device;  // of the handle, where one was given
};

}  // namespace ashlar::cudnn
