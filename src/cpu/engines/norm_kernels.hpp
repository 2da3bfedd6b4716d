// The kernels behind row_norm and channel_norm: any norm, as statistics over boxes of x.
#pragma once

#include "plan/engine.hpp"

namespace ashlar::cpu {

// For what is read several times, but written only once where it is a result too.
inline PointwiseProgram without_stores(PointwiseProgram program) {
  program.stores.clear();
  return program;
}

// `split` cuts the rows of a statistic into pieces for several threads; see BoxSpace::splits.
std::unique_ptr<Kernel> build_norm_forward(const Region& region, bool split,
                                           const DeviceProps& device);
std::unique_ptr<Kernel> build_norm_backward(const Region& region, bool split,
                                            const DeviceProps& device);
// Null where this way does not fit.
std::unique_ptr<Kernel> build_norm_backward_rows(const Region& region, const DeviceProps& device);

}  // namespace ashlar::cpu
