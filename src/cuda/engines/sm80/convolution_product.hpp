// The digits and coordinates of a convolution, in any of its three directions.
#pragma once

#include "cuda/engines/sm80/tensor_product.hpp"

namespace ashlar::cuda {

// Of a region whose anchor is one; axes of D are in the order of its tensor.
TensorProduct convolution_product(const Region& region);

}  // namespace ashlar::cuda
