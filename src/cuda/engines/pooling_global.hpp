// Global pooling: windows that are whole images.
#pragma once

#include "cuda/engines/pooling_shape.hpp"
#include "cuda/launch/kernel_design.hpp"

namespace ashlar::cuda {

// Requires shape.flat().
LaunchDesign design_global_pooling(const Graph& graph, const Region& region,
                                   const PoolingShape& shape, const DeviceProps& device);

}  // namespace ashlar::cuda
