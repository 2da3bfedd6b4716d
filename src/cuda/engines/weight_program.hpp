// Programs of weights before a product, taken apart.
#pragma once

#include "plan/pointwise_program.hpp"

namespace ashlar::cuda {

// Every value of the type is one of `to`, a float of 16 bits.
bool is_exact_in(DType dtype, DType to);

// The steps that make the value `result`, as a program.
PointwiseProgram part_of(const PointwiseProgram& program, int result);

// Factors that are the same along `axis` multiply sums along it as well as what is summed: takes
// them from the end of the program. Returns their product over its space, empty where there is
// none.
PointwiseProgram hoist_scales(PointwiseProgram& program, int axis);

// The epilogue of a product with `factor`, a program over a space that broadcasts to its own, times
// the sums before everything else.
void scale_accumulator(PointwiseProgram& epilogue, const PointwiseProgram& factor);

// A load of narrow numbers that is all of a program, or all but a multiplication by the scales of
// their blocks, before which their zero points may be taken away.
struct NarrowLoad {
  const PointwiseProgram::Step* numbers = nullptr;  // null: the program is something else
  const PointwiseProgram::Step* scales = nullptr;   // null: there are none
  const PointwiseProgram::Step* zeros = nullptr;    // null: there are none
};
NarrowLoad find_narrow_load(const PointwiseProgram& program);

}  // namespace ashlar::cuda
