// A run as nodes of a CUDA graph.
#pragma once

#include <functional>

#include "cuda/driver/driver_api.hpp"

namespace ashlar::cuda {

// What `run` puts into the stream it is given becomes nodes of `graph`, one after the other. Throws
// Error(invalid_argument) for a graph that is not empty.
void populate_graph(GraphHandle graph, DeviceOrdinal device,
                    const std::function<void(void* stream)>& run);
// Gives the nodes of such a graph what `run` says now: pointers and numbers. Throws
// Error(invalid_argument) where it does not do the same things in the same order.
void update_graph(GraphHandle graph, DeviceOrdinal device,
                  const std::function<void(void* stream)>& run);

}  // namespace ashlar::cuda
