// Implicit GEMM: sub-indices and coordinates of a convolution, in any of its three directions.
#pragma once

#include "cuda/engines/sm80/gemm_problem.hpp"

namespace ashlar::cuda {

// The anchor of the region must be a convolution. Axes of D keep the order of its tensor.
GemmProblem implicit_gemm(const Region& region);

}  // namespace ashlar::cuda
