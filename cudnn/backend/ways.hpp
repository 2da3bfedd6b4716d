// The ways to compile a graph that a program may choose from: what cuDNN calls engines. The number
// of a way is the global index of its engine.
#pragma once

#include <ashlar/outline.hpp>
#include <string>
#include <vector>

namespace ashlar::cudnn {

struct Way {
  std::string label;  // "automatic", "cpu.conv_tiles"
  CompileOptions options;
  Outline outline;
};

// At least one. First what compile() takes by itself, then the others, cheapest first, each of them
// another choice than those before; the plain engine last. Whatever a client filters by its notes
// (determinism, tf32, Winograd), a way remains.
std::vector<Way> list_ways(const Graph& graph, const Device& device);

}  // namespace ashlar::cudnn
