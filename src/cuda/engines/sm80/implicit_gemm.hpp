// The digits and coordinates of a convolution, in any of its three directions.
#pragma once

#include "cuda/engines/sm80/gemm_problem.hpp"

namespace ashlar::cuda {

// Of a region whose anchor is one; axes of D are in the order of its tensor.
GemmProblem implicit_gemm(const Region& region);

}  // namespace ashlar::cuda
