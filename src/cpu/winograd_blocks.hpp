// How a Winograd convolution is cut, and what that costs.
#pragma once

#include "cpu/winograd.hpp"
#include "plan/engine.hpp"

namespace ashlar::cpu {

struct WinogradBlocks {
  std::int64_t outputs = 4;  // of a tile and axis
  std::int64_t tiles = 1;    // transformed at once
  std::int64_t panels = 1;   // of U multiplied before their sums are written
  // Whether all threads work on one block together, which then lies in the last cache and reads U
  // once; else every thread has blocks of its own in L2 and reads U for each.
  bool shared = false;
  std::int64_t threads = 1;

  void to_knobs(Config& config) const;
  static WinogradBlocks from_knobs(const Config& config);
};

// Ways to cut forward or backward-data, cheapest first.
std::vector<Config> winograd_configs(const Region& region, const DeviceProps& device);

}  // namespace ashlar::cpu
