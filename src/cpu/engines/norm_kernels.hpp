// The kernels of row_norm and channel_norm: any norm, as statistics over boxes of x.
#pragma once

#include "plan/engine.hpp"

namespace ashlar::cpu {

// For a program that is read several times but stores a result only once.
inline PointwiseProgram without_stores(PointwiseProgram program) {
  program.stores.clear();
  return program;
}

// `split` splits the rows of a statistic into chunks for several threads; see BoxSpace::splits.
std::unique_ptr<Kernel> build_norm_forward(const Region& region, bool split,
                                           const DeviceProps& device);
std::unique_ptr<Kernel> build_norm_backward(const Region& region, bool split,
                                            const DeviceProps& device);
// Null if the one-pass kernel does not support the layout.
std::unique_ptr<Kernel> build_norm_backward_rows(const Region& region, const DeviceProps& device);

}  // namespace ashlar::cpu
