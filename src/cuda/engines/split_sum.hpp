// The second launch of kernels whose blocks share out what is summed: adds the parts that they left
// in scratch, always in the same order, and finishes every sum with a program.
#pragma once

#include "cuda/launch/kernel_design.hpp"

namespace ashlar::cuda {

// Scratch for `parts` times one f32 per element of the program's space, row-major: parts first.
std::int64_t split_sum_bytes(const PointwiseProgram& program, std::int64_t parts);
// `booking` is that scratch, `program` has the sum as its accumulator. The launch may start early.
LaunchDesign split_sum(const Graph& graph, const PointwiseProgram& program, int booking,
                       std::int64_t parts, const DeviceProps& device);

}  // namespace ashlar::cuda
