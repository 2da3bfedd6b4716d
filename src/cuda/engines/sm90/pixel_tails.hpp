// Tail reductions fused behind a convolution: the number of partial results of its tiles.
#pragma once

#include "cuda/engines/gemm_tails.hpp"
#include "cuda/engines/sm90/pixel_tiling.hpp"

namespace ashlar::cuda {

// `blocks` are the CTAs of the grid.
GemmTails pixel_tails(const Region& region, const PixelTiling& tiling, std::int64_t blocks);

}  // namespace ashlar::cuda
