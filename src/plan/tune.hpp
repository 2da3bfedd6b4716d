// Choosing by measurement.
#pragma once

#include "plan/lowered.hpp"
#include "plan/select.hpp"

namespace ashlar {

// Builds and times the candidates of a region on memory of its own, and takes the fastest. Those
// whose estimate is far above the best are not tried.
Choice tune(const LoweredGraph& lowered, const Region& region, EngineTable table,
            const DeviceProps& device, const CompileOptions& options);

}  // namespace ashlar
