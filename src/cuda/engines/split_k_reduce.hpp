// Split-K reduction through the workspace: adds the partials of all splits in order, then runs the
// epilogue.
#pragma once

#include "cuda/launch/kernel_design.hpp"

namespace ashlar::cuda {

// Partial p of element e of epilogue.space (row-major, axes in the program's order) is element p *
// elements + e of the workspace reservation, of type `partial`: f32, f64 or i32.
struct SplitKReduction {
  PointwiseProgram epilogue;
  std::int64_t parts = 2;
  DType partial = f32;
  int reservation = 0;
  // Programmatic dependent launch where the device supports it: the kernel waits for the partials.
  bool is_dependent_launch = false;

  std::int64_t bytes() const;  // of the workspace
};

LaunchDesign split_k_reduce(const Graph& graph, const SplitKReduction& sum, DType precision);

}  // namespace ashlar::cuda
