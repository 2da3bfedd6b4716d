// What compile() would make of a graph, without making it.
#pragma once

#include <ashlar/plan.hpp>
#include <string>
#include <vector>

namespace ashlar {

struct Outline {
  PlanNotes notes;
  std::int64_t workspace_size = 0;   // bytes, see Plan::workspace_size()
  std::int64_t owned_bytes = 0;      // see Plan::owned_bytes()
  double seconds = 0.0;              // of one run, estimated
  std::vector<std::string> engines;  // ids, region by region
  int heaviest = 0;                  // the region that is expected to take the most time
};

// No GPU kernel is compiled, so it takes microseconds and the device need not be present. Throws
// Error(invalid_graph) where compile() does.
Outline outline(const Graph& graph, const Device& device, const CompileOptions& options = {});

// The most shared memory that a block of the plan's GPU kernels is launched with, in bytes, beside
// fixed arrays of a few KB; 0 on a processor.
std::int64_t shared_memory(const Graph& graph, const Device& device,
                           const CompileOptions& options = {});

}  // namespace ashlar
