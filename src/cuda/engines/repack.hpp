// Layout transform pre-pass: copies an operand to the workspace with another contiguous axis or
// other strides.
#pragma once

#include "cuda/launch/kernel_design.hpp"

namespace ashlar::cuda {

// `from` is a prologue over (..., rows, columns) whose memory is contiguous along rows or columns;
// the workspace is contiguous along columns: element `at` is at the sum of at[axis] *
// strides[axis], the last of which is 1.
struct Repack {
  PointwiseProgram from;
  DType dtype;  // of the elements in the workspace
  Dims strides;
  std::int64_t zeros = 0;  // padding after the last column of every row
};
LaunchDesign repack(const Graph& graph, const Repack& pack, int reservation);

}  // namespace ashlar::cuda
