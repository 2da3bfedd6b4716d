// Makes a failing graph smaller while it keeps failing.
#pragma once

#include <ashlar/graph.hpp>
#include <functional>

namespace ashlar::random_graphs {

// Removes nodes and outputs, packs strides, widens dtypes and reduces extents, one at a time.
// `fails` is called at most `max_tries` times.
Graph shrink(const Graph& graph, const std::function<bool(const Graph&)>& fails,
             int max_tries = 400);

}  // namespace ashlar::random_graphs
