#include "engines_used.hpp"

#include <algorithm>
#include <string_view>
#include <vector>

namespace ashlar::bench {

namespace {

void append(std::string& list, std::string_view separator, std::string_view item) {
  if (!list.empty()) list += separator;
  list += item;
}

}  // namespace

EnginesUsed engines_used(const Inspection& inspection) {
  EnginesUsed used;
  used.regions = static_cast<int>(inspection.regions.size());
  std::vector<std::string_view> listed;
  for (const RegionInspection& region : inspection.regions) {
    if (std::find(listed.begin(), listed.end(), region.engine) == listed.end()) {
      listed.push_back(region.engine);
      append(used.engines, " + ", region.engine);
    }
    if (!region.config.empty()) append(used.configs, ", ", region.config);
    used.is_slow = used.is_slow || region.method == ComputeMethod::reference;
  }
  const auto main = std::find_if(listed.begin(), listed.end(),
                                 [](std::string_view id) { return !id.ends_with(".pointwise"); });
  if (!listed.empty()) used.main_engine = main != listed.end() ? *main : listed.front();
  return used;
}

}  // namespace ashlar::bench
