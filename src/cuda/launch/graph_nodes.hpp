// Adds a run to a CUDA graph that the caller owns.
#pragma once

#include <functional>

#include "cuda/driver/driver_api.hpp"

namespace ashlar::cuda {

// Adds the work that `run` enqueues as a chain of nodes. Throws Error(invalid_argument) for a graph
// that is not empty.
void populate_graph(GraphHandle graph, DeviceOrdinal device,
                    const std::function<void(void* stream)>& run);
// Updates the nodes of such a graph with the pointers and scalars of `run`. Throws
// Error(invalid_argument) where `run` enqueues a different sequence of operations.
void update_graph(GraphHandle graph, DeviceOrdinal device,
                  const std::function<void(void* stream)>& run);

}  // namespace ashlar::cuda
