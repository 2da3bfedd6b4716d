// Selection of an engine and a configuration for a region: one candidate list, ranked by the cost
// model or timed (plan/tune.hpp).
#pragma once

#include "plan/engine.hpp"

namespace ashlar {

struct Attempt {
  const Engine* engine = nullptr;
  std::string outcome;  // the reason of a refusal, or the estimate of the best candidate
  bool is_other_operation = false;  // refused because the engine is for another operation
  bool is_supported = false;        // the engine takes the region, though options may exclude it
};

struct Choice {
  const Engine* engine = nullptr;  // null if the table is empty
  Config config;
  double seconds = 0;             // estimated, or measured by tuning
  std::vector<Attempt> attempts;  // every engine of the table, in order
};

struct Candidate {
  const Engine* engine = nullptr;
  Config config;
  double seconds = 0;  // estimated
};

// The candidates for a region and the outcome of every engine.
struct Ranking {
  std::vector<Candidate> candidates;  // cheapest first; last-resort engines after all others
  std::vector<Attempt> attempts;
};
Ranking rank(const Region& region, EngineTable table, const DeviceProps& device,
             const CompileOptions& options);

// Selects the cheapest candidate by estimate.
Choice select(const Region& region, EngineTable table, const DeviceProps& device,
              const CompileOptions& options);

// Looks up the configuration of a saved plan; throws Error(invalid_argument) if this version does
// not offer it.
Choice select_saved(const Region& region, EngineTable table, const DeviceProps& device,
                    std::string_view engine_id,
                    const std::vector<std::pair<std::string, std::int64_t>>& knobs);

}  // namespace ashlar
