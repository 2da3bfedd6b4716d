// Regions that compute every element on its own, as programs.
#pragma once

#include <vector>

#include "plan/region.hpp"

namespace ashlar::cuda {

// One program of regions without an anchor, of random tensors and dropout, whose numbers become
// steps, and of dequantisation, whose scales do; one per input of a concatenation. None of all
// others.
std::vector<PointwiseProgram> element_programs(const Region& region);

}  // namespace ashlar::cuda
