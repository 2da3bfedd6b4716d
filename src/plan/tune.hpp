// Choosing by measurement.
#pragma once

#include <ashlar/tune.hpp>

#include "plan/lowered.hpp"
#include "plan/select.hpp"

namespace ashlar {

// The candidates that are worth a trial, the best estimate first: neither those whose estimate is
// far above it nor a last resort, unless there is nothing else; those of one engine where it is
// wished for; at most CompileOptions::max_candidates of them.
std::vector<Candidate> contenders(std::vector<Candidate> candidates, const CompileOptions& options);

// The contenders as they are told to the outside.
RegionTrials trials_of(const LoweredGraph& lowered, const Region& region,
                       const std::vector<Candidate>& contenders);

// Builds and times the contenders of a region on memory of its own, and remembers the
// fastest; or finds it remembered.
RegionTrials time_contenders(const LoweredGraph& lowered, const Region& region,
                             const std::vector<Candidate>& contenders, const DeviceProps& device,
                             const TuneRequest& request);

// The fastest of a region.
Choice tune(const LoweredGraph& lowered, const Region& region, EngineTable table,
            const DeviceProps& device, const CompileOptions& options);

}  // namespace ashlar
