// Tuning records: the fastest candidates, stored in the file cache (base/file_cache.hpp) under
// "tuning".
#pragma once

#include <optional>

#include "plan/tune.hpp"

namespace ashlar {

struct TuningRecord {
  std::size_t best = 0;  // index into the contenders
  double seconds = 0;
};

// The key of a record: graph and region, device, all contenders, and the options that affect their
// times. A version with other contenders has another key and tunes again.
std::string tuning_key(const LoweredGraph& lowered, const Region& region, const DeviceProps& device,
                       const RegionTrials& contenders, const CompileOptions& options);

std::optional<TuningRecord> recall(const std::string& key, std::size_t contenders);
void remember(const std::string& key, const TuningRecord& record);

}  // namespace ashlar
