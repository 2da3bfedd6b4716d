// Build and cost helpers of the row-wise engines.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cpu/threads.hpp"
#include "plan/engine.hpp"

namespace ashlar::cpu {

// Builds KernelType<float> or KernelType<double>, by the region's precision.
template <template <class> class KernelType, class... Args>
std::unique_ptr<Kernel> build_for_precision(const Region& region, Args&&... args) {
  if (region.precision() == f64)
    return std::make_unique<KernelType<double>>(region, std::forward<Args>(args)...);
  return std::make_unique<KernelType<float>>(region, std::forward<Args>(args)...);
}

// Whether a tensor is ragged; box-wise engines do not support that.
inline bool touches_ragged(const Region& region) {
  const auto in = [](const PointwiseProgram& program) {
    for (const auto& step : program.steps)
      if (step.kind == PointwiseProgram::Step::Kind::load && step.view.ragged_offset != kNoTensor)
        return true;
    for (const auto& store : program.stores)
      if (store.view.ragged_offset != kNoTensor) return true;
    return false;
  };
  for (const PointwiseProgram& prologue : region.prologues)
    if (in(prologue)) return true;
  if (region.anchor)
    for (const View& output : region.anchor->outputs)
      if (output.present() && output.ragged_offset != kNoTensor) return true;
  return in(region.epilogue);
}

// Rows pass through an L1 buffer: a fraction of the roofline of plain loops.
inline Cost row_cost(const Region& region, double fraction) {
  return {.flops = region.flops(),
          .bytes = region.bytes(),
          .flops_fraction = 0.5 * fraction,
          .bytes_fraction = fraction};
}

inline Config make_config(std::vector<std::pair<std::string, std::int64_t>> knobs, const Cost& cost,
                          std::int64_t scratch_bytes = 0) {
  Config config;
  config.knobs = std::move(knobs);
  config.cost = cost;
  config.scratch_bytes = scratch_bytes;
  return config;
}

}  // namespace ashlar::cpu
