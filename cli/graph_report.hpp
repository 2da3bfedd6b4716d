// One graph, explained and, where asked for, run, checked and timed: what `ashlar explain` shows.
#pragma once

#include <ashlar/inspect.hpp>
#include <optional>

#include "checking.hpp"
#include "comparison.hpp"

namespace ashlar::cli {

struct GraphReport {
  Graph given;  // as it was read
  Inspection inspection;
  std::optional<CheckReport> check;
  std::optional<Measured> measured;
  std::string timing;  // lines that say what was measured
};

struct ReportRequest {
  bool check = false, time = false;  // either needs a device that is present
  double time_budget = 1;            // seconds
  std::uint64_t seed = 1;            // of the inputs
};

GraphReport report_graph(Graph graph, const Device& device, const CompileOptions& options,
                         const ReportRequest& request, Progress& progress);

}  // namespace ashlar::cli
