// Graphs that together reach every engine.
#pragma once

#include <ashlar/graph.hpp>
#include <vector>

namespace ashlar::stress {

std::vector<Graph> sample_graphs();
Graph training_step();  // the largest of them

}  // namespace ashlar::stress
