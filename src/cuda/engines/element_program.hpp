// Element-wise regions as pointwise programs.
#pragma once

#include <vector>

#include "plan/region.hpp"

namespace ashlar::cuda {

// One program for regions without an anchor, for random tensors and dropout (the random values
// become steps) and for dequantisation (the scales become steps); one per input of a concatenation.
// Empty for all other regions.
std::vector<PointwiseProgram> element_programs(const Region& region);

}  // namespace ashlar::cuda
