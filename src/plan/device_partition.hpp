// Partitioning for a device: maximal regions, without the fusions that its engines refuse or that
// do not pay.
#pragma once

#include "plan/engine_choices.hpp"
#include "plan/partition.hpp"

namespace ashlar {

// Undoes fusions that would leave a region to the reference engine, or to another last-resort
// engine although a specialised engine supports a smaller region. `limits` receives the fusions
// allowed, by node.
std::vector<Region> partition_for_device(const LoweredGraph& lowered, EngineChoices& engines,
                                         std::vector<FusionLimits>& limits);

}  // namespace ashlar
