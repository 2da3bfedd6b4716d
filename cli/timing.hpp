// Timing a plan, and the work it does.
#pragma once

#include <ashlar/plan.hpp>
#include <cstdint>
#include <functional>
#include <string>

namespace ashlar::cli {

struct Timing {
  double median = 0;  // seconds
  double minimum = 0;
  std::int64_t runs = 0;
};

// Runs once to warm up, then as often as fits into `budget` seconds, at least `least` times.
Timing measure(const std::function<double()>& seconds_of_run, double budget, std::int64_t least);

// Bytes that must move at least once: all bound tensors.
double traffic_bytes(const Graph& graph);

// "median 1.23 ms, minimum 1.20 ms of 512 runs; 93.2 GFLOP/s, 4.1 GB/s"
std::string describe(const Timing& timing, const Plan& plan);

}  // namespace ashlar::cli
