// Ranking of candidates and selection of an engine.
#include "plan/select.hpp"

#include <algorithm>
#include <limits>

namespace ashlar {

namespace {

constexpr std::int64_t kNoLimit = std::numeric_limits<std::int64_t>::max();
// With a workspace limit of 0 the plan owns the scratch memory; up to this much is acceptable.
constexpr std::int64_t kFreeOwnedScratch = 64 << 20;

// Why the options exclude a configuration; empty if they do not.
std::string excluded(const Config& config, const CompileOptions& options) {
  if (options.deterministic && !config.notes.deterministic) return "not deterministic";
  if (!options.allow_tf32 && config.notes.tf32) return "rounds to tf32";
  if (!options.allow_winograd && config.notes.winograd != 0) return "computes in Winograd tiles";
  const std::int64_t limit =
      options.workspace_limit == 0 ? kFreeOwnedScratch : options.workspace_limit;
  if (config.scratch_bytes > limit)
    return fmt::format("needs {} bytes of scratch, the limit is {}", config.scratch_bytes, limit);
  return {};
}

std::string readable_time(double seconds) {
  if (seconds < 1e-3) return fmt::format("{:.3g} us", seconds * 1e6);
  if (seconds < 1) return fmt::format("{:.3g} ms", seconds * 1e3);
  return fmt::format("{:.3g} s", seconds);
}

}  // namespace

Ranking rank(const Region& region, EngineTable table, const DeviceProps& device,
             const CompileOptions& options) {
  Ranking ranking;
  const DType precision = region.precision();
  for (const Engine* engine : table) {
    Attempt attempt{engine, {}, false};
    if (options.reference_only && !is_last_resort(engine->kind())) {
      attempt.outcome = "skipped: reference_only is set";
    } else if (const Support support = engine->supports(region, device); !support) {
      attempt.outcome = "refused: " + support.reason();
      attempt.is_other_operation = support.is_other_operation();
    } else {
      attempt.is_supported = true;
      int usable = 0;
      for (Config& config : engine->configs(region, device)) {
        if (const std::string reason = excluded(config, options); !reason.empty()) {
          if (usable == 0) attempt.outcome = "filtered: " + reason;
          continue;
        }
        const double seconds = config.cost.seconds(device, precision);
        if (usable++ == 0) attempt.outcome = readable_time(seconds) + " estimated";
        ranking.candidates.push_back({engine, std::move(config), seconds});
      }
    }
    ranking.attempts.push_back(std::move(attempt));
  }
  const auto is_wanted = [&](const Candidate& c) { return c.engine->id() == options.engine; };
  // Estimates of small problems are too rough to prefer a last-resort engine.
  const auto is_last = [](const Candidate& c) { return is_last_resort(c.engine->kind()); };
  std::stable_sort(ranking.candidates.begin(), ranking.candidates.end(),
                   [&](const Candidate& a, const Candidate& b) {
                     if (is_wanted(a) != is_wanted(b)) return is_wanted(a);
                     if (is_last(a) != is_last(b)) return is_last(b);
                     return a.seconds < b.seconds;
                   });
  // If the workspace limit leaves only last-resort engines, ignore it: the plan then owns the
  // scratch memory.
  const bool only_last_resort =
      ranking.candidates.empty() || is_last_resort(ranking.candidates[0].engine->kind());
  if (only_last_resort && !options.reference_only && options.workspace_limit != kNoLimit) {
    CompileOptions without_limit = options;
    without_limit.workspace_limit = kNoLimit;
    return rank(region, table, device, without_limit);
  }
  return ranking;
}

Choice select(const Region& region, EngineTable table, const DeviceProps& device,
              const CompileOptions& options) {
  Ranking ranking = rank(region, table, device, options);
  Choice choice;
  choice.attempts = std::move(ranking.attempts);
  if (ranking.candidates.empty()) return choice;
  Candidate& cheapest = ranking.candidates[0];
  choice.engine = cheapest.engine;
  choice.config = std::move(cheapest.config);
  choice.seconds = cheapest.seconds;
  return choice;
}

Choice select_saved(const Region& region, EngineTable table, const DeviceProps& device,
                    std::string_view engine_id,
                    const std::vector<std::pair<std::string, std::int64_t>>& knobs) {
  for (const Engine* engine : table) {
    if (engine->id() != engine_id || !engine->supports(region, device)) continue;
    for (Config& config : engine->configs(region, device)) {
      if (config.knobs != knobs) continue;
      const double seconds = config.cost.seconds(device, region.precision());
      return {engine, std::move(config), seconds, {{engine, "as saved", false, true}}};
    }
  }
  fail(ErrorCode::invalid_argument,
       "plan: got engine '{}' with a configuration that this version does not offer, expected one "
       "of its engines; compile the graph again",
       engine_id);
}

}  // namespace ashlar
