// Merges axes that are contiguous in all tensors of a program, to get the longest possible rows.
#pragma once

#include <vector>

#include "plan/pointwise_program.hpp"

namespace ashlar {

// `shapes[0]` is the full space; on each axis every other shape and every program's space has its
// extent, 1, or a divisor of it. Merges adjacent axes where all programs and shapes allow it, and
// rewrites all of them.
void merge_axes(const std::vector<PointwiseProgram*>& programs, const std::vector<Dims*>& shapes);

// Flattens the programs to one axis if all their tensors are packed in the same axis order, with
// `last` varying fastest. Otherwise returns false and leaves the programs unchanged.
bool flatten(const std::vector<PointwiseProgram*>& programs, int last);

// Moves `axis` to the end; the order of the other axes is preserved.
void move_axis_last(PointwiseProgram& program, int axis);

// The axis along which the rows of these programs are cheapest to read and write.
int choose_row_axis(const Dims& space, const std::vector<const PointwiseProgram*>& programs);

}  // namespace ashlar
