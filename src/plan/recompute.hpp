// Recomputation (CompileOptions::recompute): values that are read again much later are computed
// again for these reads instead of being kept in the workspace.
#pragma once

#include "plan/device_partition.hpp"

namespace ashlar {

// `regions` are those of `lowered` in execution order, partitioned with `limits`; all three are
// replaced if recomputing something lowers the estimated workspace.
void recompute(LoweredGraph& lowered, EngineChoices& engines, std::vector<FusionLimits>& limits,
               std::vector<Region>& regions);

}  // namespace ashlar
