// Fallback for tensors whose address is not a multiple of 16 bytes, which TMA does not support.
#pragma once

#include <functional>

#include "cuda/launch/kernel_design.hpp"

namespace ashlar::cuda {

// False where a slice that the program reads or writes is known to begin at an unaligned address.
bool has_aligned_views(const PointwiseProgram& program);

// The design that runs where an address turns out to be unaligned: it needs no workspace, accepts
// any address and keeps the promises of the configuration's notes: tensor-core kernels whose
// threads load element by element, for GEMMs, convolutions and attention; otherwise the generic
// engine.
std::function<KernelDesign()> unaligned_fallback(const Graph& graph, const Region& region,
                                                 const Config& config, const DeviceProps& device);

}  // namespace ashlar::cuda
