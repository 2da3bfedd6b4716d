// A launch before others: the elements of an operand to scratch, with another axis contiguous or at
// other distances.
#pragma once

#include "cuda/launch/kernel_design.hpp"

namespace ashlar::cuda {

// `from` is a prologue over (..., rows, columns) whose memory lies along the rows or the columns;
// scratch then lies along the columns: element `at` at the sum of at[axis] * strides[axis], the
// last of which is 1.
struct Repack {
  PointwiseProgram from;
  DType dtype;  // of the elements in scratch
  Dims strides;
  std::int64_t zeros = 0;  // behind the last column of every row
};
LaunchDesign repack(const Graph& graph, const Repack& pack, int reservation);

}  // namespace ashlar::cuda
