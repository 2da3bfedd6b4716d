// Decides how much to recompute, by the estimated workspace.
#include "plan/recompute.hpp"

#include <algorithm>
#include <array>
#include <ashlar/inspect.hpp>
#include <map>

#include "base/fail.hpp"
#include "plan/kept_values.hpp"
#include "plan/workspace.hpp"

namespace ashlar {

namespace {

constexpr std::array<std::string_view, 3> kNames = {"none", "cheap", "all"};

// A graph, its regions and their estimated workspace.
struct Version {
  LoweredGraph lowered;
  std::vector<FusionLimits> limits;
  std::vector<Region> regions;
  std::int64_t workspace = 0;
};

std::int64_t estimated_workspace(const LoweredGraph& lowered, EngineChoices& engines,
                                 const std::vector<Region>& regions) {
  Lifetimes lifetimes(lowered.graph);
  for (const Region& region : regions) lifetimes.add(region);
  std::vector<Buffer> buffers;
  for (const Lifetime& one : lifetimes.all())
    buffers.push_back(
        {byte_size(lowered.graph.tensor(one.tensor)), one.steps.front(), one.steps.back()});
  for (std::size_t i = 0; i < regions.size(); ++i)
    buffers.push_back({engines.select(regions[i]).config.scratch_bytes, static_cast<int>(i),
                       static_cast<int>(i)});
  return lay_out(buffers);
}

class Chooser {
 public:
  Chooser(const KeptValues& kept, EngineChoices& engines) : kept_(kept), engines_(engines) {}

  // Recomputes the first of `groups`: as many as the budget takes.
  void try_groups(std::span<const Recomputed> groups, const std::vector<bool>& checkpoints) {
    const std::int64_t budget = engines_.options().recompute_budget;
    std::size_t count = groups.size();
    Version version = version_of(groups, checkpoints);
    // The estimate falls with the count, nearly always.
    for (std::size_t low = 0; budget > 0 && version.workspace <= budget && low + 1 < count;) {
      const std::size_t middle = (low + count) / 2;
      Version smaller = version_of(groups.first(middle), checkpoints);
      if (smaller.workspace > budget) {
        low = middle;
        continue;
      }
      count = middle;
      version = std::move(smaller);
    }
    const bool fits = best_ && budget > 0 && best_->workspace <= budget;
    if (fits || (best_ && version.workspace >= best_->workspace)) return;
    best_ = std::move(version);
    chosen_ = groups.first(count);
  }

  std::optional<Version>& best() { return best_; }
  std::string note(std::int64_t workspace_before) const;

 private:
  Version version_of(std::span<const Recomputed> groups, const std::vector<bool>& checkpoints) {
    Version version{kept_.rewritten(groups, checkpoints), {}, {}};
    version.regions = partition_for_device(version.lowered, engines_, version.limits);
    version.workspace = estimated_workspace(version.lowered, engines_, version.regions);
    return version;
  }

  const KeptValues& kept_;
  EngineChoices& engines_;
  std::optional<Version> best_;
  std::span<const Recomputed> chosen_;
};

std::string Chooser::note(std::int64_t workspace_before) const {
  double bytes = 0, flops = 0;
  std::size_t values = 0;
  std::map<std::string_view, int> operations;
  for (const Recomputed& group : chosen_) {
    bytes += group.bytes;
    flops += group.flops;
    values += group.values.size();
  }
  for (const Node& node : best_->lowered.graph.nodes())
    if (node.name.ends_with(kRecomputedSuffix)) ++operations[op_label(node.op)];
  std::string list;
  for (const auto& [name, count] : operations)
    list += fmt::format("{}{} {}", list.empty() ? "" : ", ", count, name);
  return fmt::format(
      "recomputed {} value(s) of {:.3g} MB for late readers, {:.3g} GFLOP more, estimated "
      "workspace {:.3g} MB instead of {:.3g} MB: {}",
      values, bytes * 1e-6, flops * 1e-9, static_cast<double>(best_->workspace) * 1e-6,
      static_cast<double>(workspace_before) * 1e-6, list);
}

}  // namespace

std::string_view to_string(Recompute recompute) {
  return kNames[static_cast<std::size_t>(recompute)];
}

Recompute parse_recompute(std::string_view name) {
  const auto found = std::ranges::find(kNames, name);
  if (found == kNames.end())
    fail(ErrorCode::invalid_argument, "recompute: got '{}', expected one of: {}", name,
         fmt::join(kNames, ", "));
  return static_cast<Recompute>(found - kNames.begin());
}

void recompute(LoweredGraph& lowered, EngineChoices& engines, std::vector<FusionLimits>& limits,
               std::vector<Region>& regions) {
  const CompileOptions& options = engines.options();
  if (options.recompute == Recompute::none) return;
  const std::int64_t before = estimated_workspace(lowered, engines, regions);
  if (options.recompute_budget > 0 && before <= options.recompute_budget) {
    lowered.notes.push_back(
        fmt::format("recomputed nothing: the estimated workspace of {:.3g} MB is within the budget",
                    static_cast<double>(before) * 1e-6));
    return;
  }
  const KeptValues kept(lowered, regions);
  Chooser chooser(kept, engines);
  const std::vector<Recomputed> cheap = kept.cheap();
  if (!cheap.empty()) chooser.try_groups(cheap, {});
  std::vector<bool> checkpoints;
  std::vector<Recomputed> all;
  if (options.recompute == Recompute::all) {
    const std::vector<Recomputed> segments = kept.segments(checkpoints);
    all = kept.cheap(checkpoints);
    all.insert(all.end(), segments.begin(), segments.end());
    if (!segments.empty()) chooser.try_groups(all, checkpoints);
  }
  std::optional<Version>& best = chooser.best();
  if (!best || best->workspace >= before) {
    lowered.notes.push_back("recomputed nothing: the estimated workspace would not shrink");
    return;
  }
  best->lowered.notes.push_back(chooser.note(before));
  lowered = std::move(best->lowered);
  limits = std::move(best->limits);
  regions = std::move(best->regions);
}

}  // namespace ashlar
