// What the builds and cost estimates of row-wise engines share.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cpu/threads.hpp"
#include "plan/engine.hpp"

namespace ashlar::cpu {

// KernelType<float> or KernelType<double>, by what the region's values need.
template <template <class> class KernelType, class... Args>
std::unique_ptr<Kernel> build_for_precision(const Region& region, Args&&... args) {
  if (region.precision() == f64)
    return std::make_unique<KernelType<double>>(region, std::forward<Args>(args)...);
  return std::make_unique<KernelType<float>>(region, std::forward<Args>(args)...);
}

// Engines that walk tensors box by box know nothing of rows that end early.
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

// Rows pass through a buffer in L1: a fraction of what plain loops reach.
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
