// Winners of tuning, kept in files (base/file_cache.hpp) under the cache's folder "tuning".
#pragma once

#include <optional>

#include "plan/tune.hpp"

namespace ashlar {

struct TuningRecord {
  std::size_t best = 0;  // of the contenders
  double seconds = 0;
};

// Names what was tuned: the region of this graph, the device, every contender, and what options
// have to do with their times. A version that offers others finds no record and tunes again.
std::string tuning_key(const LoweredGraph& lowered, const Region& region, const DeviceProps& device,
                       const RegionTrials& contenders, const CompileOptions& options);

std::optional<TuningRecord> recall(const std::string& key, std::size_t contenders);
void remember(const std::string& key, const TuningRecord& record);

}  // namespace ashlar
