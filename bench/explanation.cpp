#include "explanation.hpp"

#include <algorithm>
#include <ashlar/plan.hpp>
#include <vector>

namespace ashlar::bench {

namespace {

// The text after every occurrence of `label`, up to one of the characters in `end`.
std::vector<std::string_view> values_of(std::string_view text, std::string_view label,
                                        const char* end) {
  std::vector<std::string_view> values;
  for (std::size_t at = text.find(label); at != std::string_view::npos;
       at = text.find(label, at + 1)) {
    const std::size_t begin = at + label.size();
    values.push_back(text.substr(begin, text.find_first_of(end, begin) - begin));
  }
  return values;
}

}  // namespace

Outline outline_of(std::string_view explanation) {
  Outline outline;
  const std::vector<std::string_view> engines = values_of(explanation, "  engine    ", " \n");
  outline.regions = static_cast<int>(engines.size());
  for (auto id = engines.begin(); id != engines.end(); ++id)
    if (std::find(engines.begin(), id, *id) == id)
      outline.engines += (outline.engines.empty() ? "" : " + ") + std::string(*id);
  for (const std::string_view config : values_of(explanation, "  config    ", "\n"))
    outline.configs += (outline.configs.empty() ? "" : ", ") + std::string(config);
  return outline;
}

std::string main_engine(const Outline& outline) {
  constexpr std::string_view kJoin = " + ";
  std::string_view rest = outline.engines;
  std::string first(rest.substr(0, rest.find(kJoin)));
  while (!rest.empty()) {
    const std::string_view id = rest.substr(0, rest.find(kJoin));
    if (!id.ends_with(".pointwise")) return std::string(id);
    rest.remove_prefix(std::min(rest.size(), id.size() + kJoin.size()));
  }
  return first;
}

bool is_slow(const Outline& outline) {
  for (const DeviceKind kind : {DeviceKind::cpu, DeviceKind::cuda})
    for (const EngineInfo& engine : engines(kind))
      if (engine.is_reference && outline.engines.find(engine.id) != std::string::npos) return true;
  return false;
}

}  // namespace ashlar::bench
