// Properties of the plan that compile() would build, without building kernels.
#pragma once

#include <ashlar/plan.hpp>
#include <string>
#include <vector>

namespace ashlar {

struct Outline {
  PlanNotes notes;
  std::int64_t workspace_size = 0;   // bytes, see Plan::workspace_size()
  std::int64_t owned_bytes = 0;      // see Plan::owned_bytes()
  double seconds = 0.0;              // estimated time of one run
  std::vector<std::string> engines;  // engine ids by region
  int heaviest = 0;                  // index of the region with the largest estimated time
};

// Compiles no GPU kernel: takes microseconds, and the device need not be present. Throws
// Error(invalid_graph) where compile() does.
Outline outline(const Graph& graph, const Device& device, const CompileOptions& options = {});

// The largest dynamic shared memory per CTA of the plan's GPU kernels, in bytes, not counting
// static arrays of a few KB; 0 on the CPU.
std::int64_t shared_memory(const Graph& graph, const Device& device,
                           const CompileOptions& options = {});

}  // namespace ashlar
