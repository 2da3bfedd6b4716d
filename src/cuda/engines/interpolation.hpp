// Nearest and linear interpolation: kernels/interpolation.cuh.
#pragma once

#include "cuda/engines/pooling_shape.hpp"
#include "cuda/launch/kernel_design.hpp"

namespace ashlar::cuda {

bool interpolates(const ResampleAttributes& op);
// Why an interpolation is none for that kernel; yes: it is.
Support supports_interpolation(const Region& region);
LaunchDesign design_interpolation(const Graph& graph, const Region& region,
                                  const PoolingShape& shape);

}  // namespace ashlar::cuda
