// alpha * accumulator + beta * z of a convolution, merged with its epilogue into one program.
#pragma once

#include "plan/region.hpp"

namespace ashlar::cuda {

// The region's epilogue over the plain accumulator: alpha, beta and z of the convolution, including
// the steps that compute z, become steps of the program.
PointwiseProgram blended_epilogue(const Region& region);

}  // namespace ashlar::cuda
