// Products of the generic engine with reductions behind them, for addresses that no other kernel
// takes.
#pragma once

#include <string>
#include <vector>

#include "cuda/launch/kernel_design.hpp"

namespace ashlar::cuda {

// One of Region::reductions: its partial results are float[parts][elements of `result`].
struct TailPass {
  std::string text;  // the struct Tail<number>, without its end
  Dims result;
  std::int64_t parts = 1;
  int reservation = 0;
};

// The product is computed once for every shape of results.
KernelDesign generic_with_tails(const Graph& graph, const Region& region,
                                const std::vector<TailPass>& tails, const DeviceProps& device);

}  // namespace ashlar::cuda
