// Joining axes that memory does not tell apart, so that rows get as long as they can be.
#pragma once

#include <vector>

#include "plan/pointwise_program.hpp"

namespace ashlar::cpu {

// `shapes[0]` is the full space; every other shape and every program's space has, on each axis, its
// extent, 1, or a divisor of it. Joins neighbouring axes wherever all of them allow it and rewrites
// all of them.
void merge_axes(const std::vector<PointwiseProgram*>& programs, const std::vector<Dims*>& shapes);

// The axis along which rows of these programs are read and written fastest.
int choose_row_axis(const Dims& space, const std::vector<const PointwiseProgram*>& programs);

}  // namespace ashlar::cpu
