// Validation rules for every tensor of a graph.
#pragma once

#include "graph/graph_data.hpp"

namespace ashlar {

inline constexpr std::size_t kMaxNameBytes = 1024;  // of a tensor or node; names appear in messages

// Fills in row-major strides if dims are known and strides are not. Throws Error(invalid_graph) or
// Error(size_overflow), naming the tensor.
void check_tensor(const GraphData& graph, Tensor& tensor);

// A computed tensor may not map two elements to one address.
void check_no_overlap(const Tensor& tensor);

}  // namespace ashlar
