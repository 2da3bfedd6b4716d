// Regions that compute every element on its own, as one program.
#pragma once

#include <optional>

#include "plan/region.hpp"

namespace ashlar::cuda {

// Of regions without an anchor, and of random tensors and dropout, whose numbers become steps.
// Nothing for all others.
std::optional<PointwiseProgram> element_program(const Region& region);

}  // namespace ashlar::cuda
