// Strategies: the alternative engine and option choices to compile a graph with, from which a
// client chooses. cuDNN calls them engines; the index of a strategy is the global index of its
// engine.
#pragma once

#include <ashlar/outline.hpp>
#include <string>
#include <vector>

namespace ashlar::cudnn {

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
