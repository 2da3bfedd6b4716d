// A plan timed side by side with what it should be compared with: the same engines unfused, oneDNN
// and the roofline.
#pragma once

#include <ashlar/inspect.hpp>
#include <optional>
#include <string>
#include <vector>

#include "progress.hpp"
#include "runner.hpp"
#include "timing.hpp"

namespace ashlar::cli {

// The least time for some work: arithmetic at the peak rate, bytes at the memory bandwidth,
// whichever takes longer.
struct Roofline {
  double flops = 0, bytes = 0;
  double arithmetic_seconds = 0, memory_seconds = 0;
  double seconds() const { return std::max(arithmetic_seconds, memory_seconds); }
  bool is_compute_bound() const { return arithmetic_seconds > memory_seconds; }
};

// Another side: timed, or the reason why not.
struct Rival {
  std::string name;  // "unfused", "oneDNN 2.6.3"
  std::string note;  // what ran ("3 regions"), or why nothing did
  std::optional<Timing> timing;
};

struct Measured {
  Timing plan;
  std::vector<double> region_seconds;  // medians
  Rival unfused, peer;
  // At rates that were measured between the runs (CPU) or are the device's (GPU).
  Roofline roofline;  // of the graph: bound tensors moved once
  std::vector<Roofline> regions;
  bool has_measured_rates = false;
  bool is_busy = false;  // other processes took most of the machine: nothing here is worth much
};

// The rooflines by the device's nominal rates, for plans that were not timed.
Roofline nominal_roofline(const RegionInspection& region);

// Spends about `budget` seconds.
Measured measure_side_by_side(const Runner& runner, const TensorMemory& memory,
                              const CompileOptions& options, double budget, Progress& progress);

// Lines: the plan's time, then one for each rival and the roofline.
std::string describe(const Measured& measured, const Plan& plan);

}  // namespace ashlar::cli
