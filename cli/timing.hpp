// Timing plans and others, and the work a plan does.
#pragma once

#include <ashlar/plan.hpp>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace ashlar::cli {

struct Timing {
  double median = 0;  // seconds
  double minimum = 0;
  std::int64_t runs = 0;
};

// Times sides in turn, so that a slow moment of the machine falls on all of them, for `budget`
// seconds in all. Each runs once to warm up and at least five times; one that takes longer than
// the budget and a second, at least once. `between` is called once per round.
std::vector<Timing> time_in_turns(const std::vector<std::function<double()>>& seconds_of_run,
                                  double budget, const std::function<void()>& between);

double median_of(std::vector<double> values);  // of at least one value

// Bytes that must move at least once: all bound tensors.
double traffic_bytes(const Graph& graph);

// "median 1.23 ms, minimum 1.20 ms of 512 runs; 93.2 GFLOP/s, 4.1 GB/s"
std::string describe(const Timing& timing, double flops, double bytes);

}  // namespace ashlar::cli
