// The second half of a product whose depth is shared out: the sums of all parts, added in order,
// then the epilogue.
#pragma once

#include "cuda/launch/kernel_design.hpp"

namespace ashlar::cuda {

// Part p of element e of epilogue.space (row-major, axes in the program's order) is number
// p * elements + e of the scratch memory `reservation`, of type `partial`: f32, f64 or i32.
struct SplitKReduction {
  PointwiseProgram epilogue;
  std::int64_t parts = 2;
  DType partial = f32;
  int reservation = 0;
  // The launch may start while the one before still computes, where the device can do that: the
  // kernel waits for its sums.
  bool is_dependent_launch = false;

  std::int64_t bytes() const;  // of the scratch memory
};

LaunchDesign split_k_reduce(const Graph& graph, const SplitKReduction& sum, DType precision);

}  // namespace ashlar::cuda
