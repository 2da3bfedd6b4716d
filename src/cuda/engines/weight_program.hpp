// Analysis of dequantisation prologues.
#pragma once

#include "plan/pointwise_program.hpp"

namespace ashlar::cuda {

// Whether every value of the type is exact in `to`, a 16-bit float.
bool is_exact_in(DType dtype, DType to);

// The sub-program that computes the value `result`.
PointwiseProgram part_of(const PointwiseProgram& program, int result);

// Hoists scales that are constant along `axis`, which commute with a sum along it, from the end of
// the program. Returns their product over its space, empty where there is none.
PointwiseProgram hoist_scales(PointwiseProgram& program, int axis);

// Multiplies the accumulator of the epilogue by `factor`, a program over a space that broadcasts to
// the epilogue's, before everything else.
void scale_accumulator(PointwiseProgram& epilogue, const PointwiseProgram& factor);

// Matches a load of narrow values that is all of a program, or all but (value - zero point) * scale
// with block-wise parameters.
struct NarrowLoad {
  const PointwiseProgram::Step* numbers = nullptr;  // null: no match
  const PointwiseProgram::Step* scales = nullptr;   // null: none
  const PointwiseProgram::Step* zeros = nullptr;    // null: none
};
NarrowLoad find_narrow_load(const PointwiseProgram& program);

}  // namespace ashlar::cuda
