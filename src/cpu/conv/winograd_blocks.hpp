// Blocking and cost of Winograd convolution.
#pragma once

#include "cpu/conv/winograd.hpp"
#include "plan/engine.hpp"

namespace ashlar::cpu {

// Whether Winograd applies to a convolution.
Support winograd_support(const Region& region);

struct WinogradBlocks {
  std::int64_t outputs = 4;  // m: outputs per tile and axis
  std::int64_t tiles = 1;    // tiles transformed at once
  // true: all threads share one block of V in L3, each with its own panels of U. false: every
  // thread has its own blocks in L2 and reads all of U for each.
  bool shared = false;
  std::int64_t k = 1;  // shared: channels of U transformed at a time
  std::int64_t threads = 1;

  void to_knobs(Config& config) const;
  static WinogradBlocks from_knobs(const Config& config);
};

// Configurations of forward or backward-data, cheapest first.
std::vector<Config> winograd_configs(const Region& region, const DeviceProps& device);
// Configurations of backward-filter: `outputs` pixels of dy per tile and axis, blocks of `tiles`.
std::vector<Config> winograd_filter_configs(const Region& region, const DeviceProps& device);

}  // namespace ashlar::cpu
