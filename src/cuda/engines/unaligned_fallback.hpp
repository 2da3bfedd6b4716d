// Tensors whose address is no multiple of 16 bytes, which the copy engine does not take.
#pragma once

#include <functional>

#include "cuda/launch/kernel_design.hpp"

namespace ashlar::cuda {

// False where a slice that the program reads or writes is known to begin elsewhere.
bool has_aligned_views(const PointwiseProgram& program);

// What runs instead where an address turns out to be so: a design without scratch that takes any
// and keeps what the configuration's notes promise: matrix units whose threads load element by
// element, for products and convolutions; the generic engine for whatever these refuse.
std::function<KernelDesign()> unaligned_fallback(const Graph& graph, const Region& region,
                                                 const Config& config, const DeviceProps& device);

}  // namespace ashlar::cuda
