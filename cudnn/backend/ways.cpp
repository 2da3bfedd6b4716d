#include "backend/ways.hpp"

#include <algorithm>

#include "core/settings.hpp"

namespace ashlar::cudnn {

namespace {

bool are_same_choice(const Outline& a, const Outline& b) {
  return a.engines == b.engines && a.workspace_size == b.workspace_size &&
         a.notes.tf32 == b.notes.tf32 && a.notes.winograd == b.notes.winograd &&
         a.notes.deterministic == b.notes.deterministic;
}

class WayList {
 public:
  WayList(const Graph& graph, const Device& device) : graph_(graph), device_(device) {}

  void add(std::string label, CompileOptions options) {
    options.allow_tf32 = options.allow_tf32 && !settings().forbids_tf32;
    Outline made = outline(graph_, device_, options);
    const auto is_known = [&](const Way& way) { return are_same_choice(way.outline, made); };
    if (std::none_of(ways_.begin(), ways_.end(), is_known))
      ways_.push_back({std::move(label), options, std::move(made)});
  }
  void sort_after_first() {
    const auto is_cheaper = [](const Way& a, const Way& b) {
      return a.outline.seconds < b.outline.seconds;
    };
    std::stable_sort(ways_.begin() + 1, ways_.end(), is_cheaper);
  }
  const Way& first() const { return ways_.front(); }
  std::vector<Way> take() { return std::move(ways_); }

 private:
  const Graph& graph_;
  const Device& device_;
  std::vector<Way> ways_;
};

CompileOptions with_engine(const std::string& id) {
  CompileOptions options;
  options.engine = id;
  return options;
}

}  // namespace

std::vector<Way> list_ways(const Graph& graph, const Device& device) {
  WayList list(graph, device);
  list.add("automatic", {});
  CompileOptions strict;
  strict.allow_tf32 = strict.allow_winograd = false;
  list.add("strict", strict);
  strict.deterministic = true;
  list.add("strict, deterministic", strict);
  const auto heaviest = static_cast<std::size_t>(list.first().outline.heaviest);
  if (const auto regions = engines_for(graph, device); heaviest < regions.size())
    for (const EngineInfo& engine : regions[heaviest].engines)
      if (!engine.is_reference) list.add(engine.id, with_engine(engine.id));
  CompileOptions unfused;
  unfused.fuse = false;
  list.add("unfused", unfused);
  list.sort_after_first();
  CompileOptions plain;
  plain.reference_only = true;
  list.add("plain", plain);
  return list.take();
}

}  // namespace ashlar::cudnn
