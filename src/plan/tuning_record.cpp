// Keys and storage of tuning records.
#include "plan/tuning_record.hpp"

#include <ashlar/version.h>

#include <cstdio>

#include "base/file_cache.hpp"
#include "base/settings.hpp"

namespace ashlar {

namespace {

const FileCache& records() {
  static const FileCache cache(
      settings().cache_directory.empty() ? std::string() : settings().cache_directory + "/tuning");
  return cache;
}

}  // namespace

std::string tuning_key(const LoweredGraph& lowered, const Region& region, const DeviceProps& device,
                       const RegionTrials& contenders, const CompileOptions& options) {
  std::string key =
      fmt::format("tuning 2, Ashlar {}, {}, {} units\ngraph {:016x}, nodes", ASHLAR_VERSION,
                  device.description, device.compute_units, lowered.graph.structural_hash());
  for (const NodeId node : region.nodes) key += fmt::format(" {}", node);
  if (options.tune_back_to_back) key += ", back to back";
  for (const auto& [name, memory] : options.constants) key += fmt::format(", '{}' constant", name);
  for (const Trial& trial : contenders.trials)
    key += fmt::format("\n{} {}", trial.engine, trial.config_text());
  return key;
}

std::optional<TuningRecord> recall(const std::string& key, std::size_t contenders) {
  const std::optional<std::string> text = records().get(key);
  TuningRecord record;
  if (!text || std::sscanf(text->c_str(), "%zu %lf", &record.best, &record.seconds) != 2 ||
      record.best >= contenders)
    return {};
  return record;
}

void remember(const std::string& key, const TuningRecord& record) {
  records().put(key, fmt::format("{} {}\n", record.best, record.seconds));
}

}  // namespace ashlar
