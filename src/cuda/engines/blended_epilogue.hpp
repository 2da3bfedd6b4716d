// Convolutions end with alpha * sum + beta * z, then comes the epilogue: both as one program.
#pragma once

#include "plan/region.hpp"

namespace ashlar::cuda {

// The region's epilogue whose accumulator is the bare sum of products: alpha, beta and z of a
// convolution are steps of it, those that make z included.
PointwiseProgram blended_epilogue(const Region& region);

}  // namespace ashlar::cuda
