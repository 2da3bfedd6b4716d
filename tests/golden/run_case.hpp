// Runs a golden case on the CPU's engines.
#pragma once

#include <ashlar/plan.hpp>
#include <cstddef>
#include <memory>
#include <stdexcept>

#include "golden/golden_file.hpp"

namespace ashlar::golden {

// Writes the outputs into `memory`; returns the plan.
inline Plan run_case(const File& file, Memory& memory, const CompileOptions& options) {
  const Plan plan = compile(file.graph, Device::cpu(), options);
  constexpr std::size_t kAlignment = 64;  // alignment of Plan::run's workspace
  std::vector<std::byte> block(static_cast<std::size_t>(plan.workspace_size()) + kAlignment);
  void* workspace = block.data();
  std::size_t space = block.size();
  std::align(kAlignment, block.size() - kAlignment, workspace, space);
  if (plan.bound_tensors() != file.bound) throw std::runtime_error("the plan binds other tensors");
  plan.run(memory.writable(), workspace);
  return plan;
}

}  // namespace ashlar::golden
