// Reductions behind a convolution: how many partial results its tiles leave.
#pragma once

#include "cuda/engines/gemm_tails.hpp"
#include "cuda/engines/sm90/pixel_tiling.hpp"

namespace ashlar::cuda {

// `blocks` of the grid.
GemmTails pixel_tails(const Region& region, const PixelTiling& tiling, std::int64_t blocks);

}  // namespace ashlar::cuda
