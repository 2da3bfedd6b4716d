#include "explanation.hpp"

#include <algorithm>
#include <ashlar/plan.hpp>
#include <vector>

namespace ashlar::bench {

Outline outline_of(std::string_view explanation) {
  constexpr std::string_view kLabel = "  engine    ";
  Outline outline;
  std::vector<std::string_view> found;
  for (std::size_t at = explanation.find(kLabel); at != std::string_view::npos;
       at = explanation.find(kLabel, at + 1)) {
    ++outline.regions;
    const std::size_t begin = at + kLabel.size();
    const std::string_view id =
        explanation.substr(begin, explanation.find_first_of(" \n", begin) - begin);
    if (std::find(found.begin(), found.end(), id) != found.end()) continue;
    found.push_back(id);
    outline.engines += (outline.engines.empty() ? "" : " + ") + std::string(id);
  }
  return outline;
}

bool is_slow(const Outline& outline) {
  for (const DeviceKind kind : {DeviceKind::cpu, DeviceKind::cuda})
    for (const EngineInfo& engine : engines(kind))
      if (engine.is_reference && outline.engines.find(engine.id) != std::string::npos) return true;
  return false;
}

}  // namespace ashlar::bench
