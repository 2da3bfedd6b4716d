#include "timing.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <vector>

namespace ashlar::cli {

namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

std::string duration_text(double seconds) {
  if (seconds >= 1) return fmt::format("{:.3g} s", seconds);
  if (seconds >= 1e-3) return fmt::format("{:.3g} ms", seconds * 1e3);
  return fmt::format("{:.3g} us", seconds * 1e6);
}

}  // namespace

Timing measure(const std::function<double()>& seconds_of_run, double budget, std::int64_t least) {
  seconds_of_run();
  std::vector<double> seconds;
  const Clock::time_point start = Clock::now();
  while (std::cmp_less(seconds.size(), least) || seconds_since(start) < budget)
    seconds.push_back(seconds_of_run());
  std::sort(seconds.begin(), seconds.end());
  return {seconds[seconds.size() / 2], seconds.front(), static_cast<std::int64_t>(seconds.size())};
}

double traffic_bytes(const Graph& graph) {
  double total = 0;
  for (const TensorId id : graph.bound_tensors())
    total += static_cast<double>(byte_size(graph.tensor(id)));
  return total;
}

std::string describe(const Timing& timing, const Plan& plan) {
  return fmt::format("median {}, minimum {} of {} {}; {:.3g} GFLOP/s, {:.3g} GB/s",
                     duration_text(timing.median), duration_text(timing.minimum), timing.runs,
                     timing.runs == 1 ? "run" : "runs", plan.flops() / timing.median / 1e9,
                     traffic_bytes(plan.graph()) / timing.median / 1e9);
}

}  // namespace ashlar::cli
