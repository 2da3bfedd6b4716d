// Joining axes that memory does not tell apart, so that rows get as long as they can be.
#pragma once

#include <vector>

#include "plan/pointwise_program.hpp"

namespace ashlar {

// `shapes[0]` is the full space; every other shape and every program's space has, on each axis, its
// extent, 1, or a divisor of it. Joins neighbouring axes wherever all of them allow it and rewrites
// all of them.
void merge_axes(const std::vector<PointwiseProgram*>& programs, const std::vector<Dims*>& shapes);

// The programs with their elements in one row, when every tensor they touch lies without gaps in
// the same order, `last` varying fastest; false, leaving them as they are, when not.
bool flatten(const std::vector<PointwiseProgram*>& programs, int last);

// The same program with `axis` as the last one; the order of the others stays.
void move_axis_last(PointwiseProgram& program, int axis);

// The axis along which rows of these programs are read and written fastest.
int choose_row_axis(const Dims& space, const std::vector<const PointwiseProgram*>& programs);

}  // namespace ashlar
