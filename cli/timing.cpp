#include "timing.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <vector>

#include "units.hpp"

namespace ashlar::cli {

namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

constexpr std::size_t kMinRuns = 5;
constexpr double kLongRun = 1;  // seconds
// Shorter runs get one before them that does not count: the side before left its own tensors in
// the caches.
constexpr double kWarmBelow = 3e-3;

}  // namespace

double median_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

std::vector<Timing> time_in_turns(const std::vector<std::function<double()>>& seconds_of_run,
                                  double budget, const std::function<void()>& between) {
  std::vector<std::vector<double>> seconds(seconds_of_run.size());
  std::vector<double> warm;
  for (const auto& run : seconds_of_run) warm.push_back(run());
  const Clock::time_point start = Clock::now();
  for (bool is_done = false; !is_done;) {
    is_done = true;
    between();
    for (std::size_t i = 0; i < seconds.size(); ++i) {
      const std::size_t least = warm[i] > std::max(budget, kLongRun) ? 1 : kMinRuns;
      if (seconds[i].size() >= least && seconds_since(start) >= budget) continue;
      is_done = false;
      if (warm[i] < kWarmBelow) seconds_of_run[i]();
      seconds[i].push_back(seconds_of_run[i]());
    }
  }
  std::vector<Timing> timings;
  for (const std::vector<double>& one : seconds)
    timings.push_back({median_of(one), *std::min_element(one.begin(), one.end()),
                       static_cast<std::int64_t>(one.size())});
  return timings;
}

double traffic_bytes(const Graph& graph) {
  double total = 0;
  for (const TensorId id : graph.bound_tensors())
    total += static_cast<double>(byte_size(graph.tensor(id)));
  return total;
}

std::string describe(const Timing& timing, double flops, double bytes) {
  return fmt::format("median {}, minimum {} of {} {}; {:.3g} GFLOP/s, {:.3g} GB/s",
                     duration_text(timing.median), duration_text(timing.minimum), timing.runs,
                     timing.runs == 1 ? "run" : "runs", flops / timing.median / 1e9,
                     bytes / timing.median / 1e9);
}

}  // namespace ashlar::cli
