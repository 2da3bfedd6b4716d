// Selection by measurement (autotuning).
#pragma once

#include <ashlar/tune.hpp>

#include "plan/backend.hpp"
#include "plan/lowered.hpp"
#include "plan/select.hpp"

namespace ashlar {

// The candidates to time, best estimate first. Drops candidates with an estimate far above the best
// and, unless there is nothing else, last-resort engines; keeps those of CompileOptions::engine
// only if it is set; returns at most CompileOptions::max_candidates.
std::vector<Candidate> contenders(std::vector<Candidate> candidates, const CompileOptions& options);

// The contenders in the form of the public API.
std::vector<Trial> trials_of(const std::vector<Candidate>& contenders);

// Builds and times the contenders of a region in memory allocated for it, and records the fastest;
// or returns the recorded one.
RegionTrials time_contenders(const LoweredGraph& lowered, const Region& region,
                             const std::vector<Candidate>& contenders, const Backend& backend,
                             const DeviceProps& device, const TuneRequest& request);

// Selects the fastest candidate of a region.
Choice tune(const LoweredGraph& lowered, const Region& region, const Backend& backend,
            const DeviceProps& device, const CompileOptions& options);

}  // namespace ashlar
