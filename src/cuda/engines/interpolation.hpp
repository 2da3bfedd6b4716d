// Nearest and linear interpolation, forward: kernels/interpolation.cuh.
#pragma once

#include "cuda/engines/pooling_shape.hpp"
#include "cuda/launch/kernel_design.hpp"

namespace ashlar::cuda {

bool interpolates(const ResampleAttributes& op);
// Whether the kernel supports the interpolation, or the reason why not.
Support supports_interpolation(const Region& region);
LaunchDesign design_interpolation(const Graph& graph, const Region& region,
                                  const PoolingShape& shape);

}  // namespace ashlar::cuda
