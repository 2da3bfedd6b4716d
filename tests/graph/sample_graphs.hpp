// Small valid graphs, at least one for every operation of the schema table.
#pragma once

#include <ashlar/graph.hpp>
#include <string>
#include <vector>

namespace ashlar::tests {

struct SampleGraph {
  std::string op;  // the operation it is a sample of
  Graph graph;
};

std::vector<SampleGraph> sample_graphs();

}  // namespace ashlar::tests
