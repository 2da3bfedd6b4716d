// The problems that are measured: each is a graph of one operation.
#pragma once

#include <ashlar/graph.hpp>
#include <functional>
#include <string>
#include <vector>

namespace ashlar::bench {

struct Case {
  std::string name;
  std::function<Graph()> build;
};

std::vector<Case> foundation_cases();

// What an input is filled with: integers use their width, inverse variances are positive.
struct Range {
  double low = -1.0;
  double high = 1.0;
};
Range input_range(const Tensor& tensor);

// Floating-point (or integer) operations of the convolutions, matmuls and attention in a graph,
// counting 2 per multiply-add; 0 when memory is what its operations wait for.
double arithmetic(const Graph& graph);
// Bytes that must move at least once: all bound tensors.
double traffic(const Graph& graph);

}  // namespace ashlar::bench
