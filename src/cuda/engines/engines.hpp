// The engines of the CUDA backend, one per file.
#pragma once

#include "cuda/launch/kernel_design.hpp"

namespace ashlar::cuda {

const CudaEngine& channel_norm_engine();
const CudaEngine& pointwise_engine();

}  // namespace ashlar::cuda
