#include "backend/strategies.hpp"

#include <algorithm>

#include "core/settings.hpp"

namespace ashlar::cudnn {

namespace {

bool are_same_choice(const Outline& a, const Outline& b) {
  return a.engines == b.engines && a.workspace_size == b.workspace_size &&
         a.notes.tf32 == b.notes.tf32 && a.notes.winograd == b.notes.winograd &&
         a.notes.deterministic == b.notes.deterministic;
}

class StrategyList {
 public:
  StrategyList(const Graph& graph, const Device& device) : graph_(graph), device_(device) {}

  void add(std::string label, CompileOptions options) {
    options.allow_tf32 = options.allow_tf32 && !settings().forbids_tf32;
    Outline candidate = outline(graph_, device_, options);
    const auto is_known = [&](const Strategy& strategy) {
      return are_same_choice(strategy.outline, candidate);
    };
    if (std::none_of(strategies_.begin(), strategies_.end(), is_known))
      strategies_.push_back({std::move(label), options, std::move(candidate)});
  }
  void sort_after_first() {
    const auto is_cheaper = [](const Strategy& a, const Strategy& b) {
      return a.outline.seconds < b.outline.seconds;
    };
    std::stable_sort(strategies_.begin() + 1, strategies_.end(), is_cheaper);
  }
  const Strategy& first() const { return strategies_.front(); }
  std::vector<Strategy> take() { return std::move(strategies_); }

 private:
  const Graph& graph_;
  const Device& device_;
  std::vector<Strategy> strategies_;
};

CompileOptions with_engine(const std::string& id) {
  CompileOptions options;
  options.engine = id;
  return options;
}

}  // namespace

Outline outline(const Graph& graph, const Device& device, const CompileOptions& options) {
  const Inspection plan = inspect(graph, device, options);
  Outline outline{plan.notes, plan.workspace_bytes, plan.seconds(), {}};
  for (const RegionInspection& region : plan.regions) outline.engines.push_back(region.engine);
  return outline;
}

std::vector<Strategy> list_strategies(const Graph& graph, const Device& device) {
  StrategyList list(graph, device);
  list.add("automatic", {});
  CompileOptions strict;
  strict.allow_tf32 = strict.allow_winograd = false;
  list.add("strict", strict);
  strict.deterministic = true;
  list.add("strict, deterministic", strict);
  const Inspection plan = inspect(graph, device);
  if (const RegionInspection* heaviest = plan.heaviest())
    for (const EngineAttempt& attempt : heaviest->attempts)
      if (attempt.is_supported && attempt.method != ComputeMethod::reference)
        list.add(attempt.engine, with_engine(attempt.engine));
  CompileOptions unfused;
  unfused.fuse = false;
  list.add("unfused", unfused);
  list.sort_after_first();
  CompileOptions reference;
  reference.reference_only = true;
  list.add("reference", reference);
  return list.take();
}

}  // namespace ashlar::cudnn
