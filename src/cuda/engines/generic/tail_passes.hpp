// GEMMs and convolutions of the generic engine with fused tails: the fallback for unaligned
// addresses that the fast kernels do not support.
#pragma once

#include <string>
#include <vector>

#include "cuda/launch/kernel_design.hpp"

namespace ashlar::cuda {

// One of Region::reductions; its partials are float[parts][elements of `result`].
struct TailPass {
  std::string text;  // the struct Tail<number>, without its closing brace
  Dims result;
  std::int64_t parts = 1;
  int reservation = 0;
};

// Recomputes the GEMM for every distinct shape of results.
KernelDesign generic_with_tails(const Graph& graph, const Region& region,
                                const std::vector<TailPass>& tails, const DeviceProps& device);

}  // namespace ashlar::cuda
