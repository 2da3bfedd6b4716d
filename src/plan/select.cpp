#include "plan/select.hpp"

#include <limits>

namespace ashlar {

namespace {

constexpr std::int64_t kNoLimit = std::numeric_limits<std::int64_t>::max();

// Why a configuration may not be used, or empty.
std::string excluded(const Config& config, const CompileOptions& options) {
  if (options.deterministic && !config.notes.deterministic) return "not deterministic";
  if (!options.allow_tf32 && config.notes.tf32) return "rounds to tf32";
  if (!options.allow_winograd && config.notes.winograd != 0) return "computes in Winograd tiles";
  if (config.scratch_bytes > options.workspace_limit)
    return fmt::format("needs {} bytes of scratch, the limit is {}", config.scratch_bytes,
                       options.workspace_limit);
  return {};
}

}  // namespace

Choice select(const Region& region, EngineTable table, const DeviceProps& device,
              const CompileOptions& options) {
  Choice choice;
  const DType precision = region.precision();
  for (const Engine* engine : table) {
    Attempt attempt{engine, {}, false};
    if (options.reference_only && engine->kind() != EngineKind::reference) {
      attempt.outcome = "skipped: only the reference was asked for";
    } else if (const Support support = engine->supports(region, device); !support) {
      attempt.outcome = "refused: " + support.reason();
      attempt.is_other_operation = support.is_other_operation();
    } else {
      int usable = 0;
      for (Config& config : engine->configs(region, device)) {
        if (const std::string reason = excluded(config, options); !reason.empty()) {
          if (usable == 0) attempt.outcome = "filtered: " + reason;
          continue;
        }
        const double seconds = config.cost.seconds(device, precision);
        if (usable++ == 0) attempt.outcome = fmt::format("{:.3g} us estimated", seconds * 1e6);
        if (choice.engine && seconds >= choice.seconds) continue;
        choice.engine = engine;
        choice.config = std::move(config);
        choice.seconds = seconds;
      }
    }
    choice.attempts.push_back(std::move(attempt));
  }
  // A limit that leaves nothing but the reference is not worth its price: the plan keeps the
  // scratch memory itself then.
  const bool only_reference = !choice.engine || choice.engine->kind() == EngineKind::reference;
  if (only_reference && !options.reference_only && options.workspace_limit != kNoLimit) {
    CompileOptions without_limit = options;
    without_limit.workspace_limit = kNoLimit;
    return select(region, table, device, without_limit);
  }
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
      return {engine, std::move(config), seconds, {{engine, "as saved"}}};
    }
  }
  fail(ErrorCode::invalid_argument,
       "plan: engine '{}' with the saved configuration is not offered by this version, expected "
       "one of its engines; "
       "compile the graph again",
       engine_id);
}

}  // namespace ashlar
