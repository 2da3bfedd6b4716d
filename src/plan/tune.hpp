// Choosing by measurement.
#pragma once

#include "plan/lowered.hpp"
#include "plan/select.hpp"

namespace ashlar {

// The candidates that are worth a trial, the best estimate first: neither those whose estimate is
// far above it nor a last resort, unless there is nothing else; one where an engine is wished for.
std::vector<Candidate> contenders(std::vector<Candidate> candidates, const CompileOptions& options);

// Builds and times the contenders of a region on memory of its own, and takes the fastest.
Choice tune(const LoweredGraph& lowered, const Region& region, EngineTable table,
            const DeviceProps& device, const CompileOptions& options);

}  // namespace ashlar
