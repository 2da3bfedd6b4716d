// Selection of a candidate by measurement.
#include "plan/tune.hpp"

#include <algorithm>

#include "plan/region_timer.hpp"
#include "plan/tuning_record.hpp"

namespace ashlar {

namespace {

constexpr double kMaxEstimateRatio =
    20;  // multiple of the best estimate beyond which none is timed

}  // namespace

std::string Trial::config_text() const { return Config{knobs, {}, 0, {}}.to_text(); }

std::vector<Candidate> contenders(std::vector<Candidate> candidates,
                                  const CompileOptions& options) {
  if (candidates.empty()) return candidates;
  const bool wished = candidates[0].engine->id() == options.engine;
  const double hopeless = kMaxEstimateRatio * candidates[0].seconds;
  const auto is_too_slow = [&](const Candidate& candidate) {
    if (wished) return candidate.engine->id() != options.engine;
    return is_last_resort(candidate.engine->kind()) || candidate.seconds > hopeless;
  };
  candidates.erase(std::remove_if(candidates.begin() + 1, candidates.end(), is_too_slow),
                   candidates.end());
  const auto most = static_cast<std::size_t>(std::max(options.max_candidates, 0));
  if (most > 0 && candidates.size() > most)
    candidates.erase(candidates.begin() + static_cast<std::ptrdiff_t>(most), candidates.end());
  return candidates;
}

std::vector<Trial> trials_of(const std::vector<Candidate>& contenders) {
  std::vector<Trial> trials;
  for (const Candidate& one : contenders)
    trials.push_back({std::string(one.engine->id()), one.config.knobs, one.seconds});
  return trials;
}

RegionTrials time_contenders(const LoweredGraph& lowered, const Region& region,
                             const std::vector<Candidate>& contenders, const Backend& backend,
                             const DeviceProps& device, const TuneRequest& request) {
  RegionTrials result{region.to_text(lowered.graph), trials_of(contenders)};
  std::vector<Trial>& trials = result.trials;
  const std::string key = tuning_key(lowered, region, device, result, request.options);
  if (const auto found = recall(key, trials.size()); found && !request.again) {
    result.best = found->best;
    result.remembered = true;
    trials[found->best].measured = found->seconds;
    return result;
  }
  const RegionTimer timer(lowered, region, backend, device, request.options);
  for (std::size_t i = 0; i < trials.size(); ++i) {
    if (request.progress)
      request.progress(fmt::format("{}, {} of {}: {} {}", result.region, i + 1, trials.size(),
                                   trials[i].engine, trials[i].config_text()));
    try {
      trials[i].measured = timer.seconds(contenders[i]);
    } catch (const Error& error) {
      // A candidate that cannot be built must not prevent the selection of another.
      trials[i].failure = error.what();
      continue;
    }
    const std::optional<double>& least = trials[result.best].measured;
    if (!least || *trials[i].measured < *least) result.best = i;
  }
  if (trials[result.best].measured) remember(key, {result.best, *trials[result.best].measured});
  return result;
}

Choice tune(const LoweredGraph& lowered, const Region& region, const Backend& backend,
            const DeviceProps& device, const CompileOptions& options) {
  Ranking ranking = rank(region, backend.engines(), device, options);
  std::vector<Candidate> candidates = contenders(std::move(ranking.candidates), options);
  if (candidates.size() < 2) return select(region, backend.engines(), device, options);
  const RegionTrials timed =
      time_contenders(lowered, region, candidates, backend, device, {options});
  Choice choice;
  choice.attempts = std::move(ranking.attempts);
  for (Attempt& attempt : choice.attempts) {
    // The fastest of all its configurations.
    std::optional<double> least;
    for (const Trial& trial : timed.trials)
      if (attempt.engine->id() == trial.engine && trial.measured)
        least = std::min(*trial.measured, least.value_or(*trial.measured));
    if (least)
      attempt.outcome +=
          fmt::format(", {:.3g} us measured{}", *least * 1e6, timed.remembered ? " earlier" : "");
  }
  Candidate& best = candidates[timed.best];
  choice.engine = best.engine;
  choice.config = std::move(best.config);
  choice.seconds = timed.trials[timed.best].measured.value_or(best.seconds);
  return choice;
}

}  // namespace ashlar
