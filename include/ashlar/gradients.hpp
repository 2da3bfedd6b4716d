// Reverse-mode differentiation, from graph to graph.
#pragma once

#include <ashlar/graph.hpp>
#include <optional>
#include <span>
#include <vector>

namespace ashlar {

#pragma GCC visibility push(default)

struct GradientOptions {
  // By position in `of`: the gradient of the final result with respect to that value, with its
  // dims. Empty, or absent at the end: 1, for values of one element.
  std::vector<Value> cotangents = {};
  // The dtype of the results, and of the sums that make them. Default: that of the value.
  std::optional<DType> dtype = {};
};

// Adds the operations to `graph` that compute the gradients of `of` with respect to `wrt`, summed
// over `of`. Returns one value per element of `wrt`, empty where `of` does not depend on it, or
// only through steps such as floor. The result is an ordinary graph: values of the forward pass
// that a gradient reads are kept for it, and a second call differentiates the first. Throws
// Error(invalid_argument), and leaves the graph unchanged, for an operation without a gradient on
// the way; the message names it. docs/gradients.md lists the rules.
std::vector<Value> gradients(Graph& graph, std::span<const Value> of, std::span<const Value> wrt,
                             const GradientOptions& options = {});

#pragma GCC visibility pop

}  // namespace ashlar
