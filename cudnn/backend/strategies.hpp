// Strategies: the alternative engine and option choices to compile a graph with, from which a
// client chooses. cuDNN calls them engines; the index of a strategy is the global index of its
// engine.
#pragma once

#include <ashlar/inspect.hpp>
#include <string>
#include <vector>

namespace ashlar::cudnn {

// What a client asks about a plan.
struct Outline {
  PlanNotes notes;
  std::int64_t workspace_size = 0;
  double seconds = 0.0;              // estimated time of one run
  std::vector<std::string> engines;  // engine ids by region
};
Outline outline(const Graph& graph, const Device& device, const CompileOptions& options);

struct Strategy {
  std::string label;  // "automatic", "cpu.conv_tiles"
  CompileOptions options;
  Outline outline;
};

// At least one strategy, without duplicates. First the default of compile(), then the others by
// estimated time, last the reference engine. Whatever a client filters out by notes
// (non-determinism, TF32, Winograd), at least one strategy remains.
std::vector<Strategy> list_strategies(const Graph& graph, const Device& device);

}  // namespace ashlar::cudnn
