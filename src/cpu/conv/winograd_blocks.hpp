// How a Winograd convolution is cut, and what that costs.
#pragma once

#include "cpu/conv/winograd.hpp"
#include "plan/engine.hpp"

namespace ashlar::cpu {

// Whether a convolution can be computed in tiles at all.
Support winograd_support(const Region& region);

struct WinogradBlocks {
  std::int64_t outputs = 4;  // of a tile and axis
  std::int64_t tiles = 1;    // transformed at once
  // Whether all threads work on one block together, which then lies in the last cache, each on its
  // own panels of U; else every thread has blocks of its own in L2 and reads all of U for each.
  bool shared = false;
  std::int64_t k = 1;  // shared: channels of U transformed at a time
  std::int64_t threads = 1;

  void to_knobs(Config& config) const;
  static WinogradBlocks from_knobs(const Config& config);
};

// Ways to cut forward or backward-data, cheapest first.
std::vector<Config> winograd_configs(const Region& region, const DeviceProps& device);
// Ways to cut backward-filter: `outputs` pixels of dy per tile and axis, blocks of `tiles`.
std::vector<Config> winograd_filter_configs(const Region& region, const DeviceProps& device);

}  // namespace ashlar::cpu
