// Samples one side of a comparison: our plan, a peer or a copy.
#pragma once

#include <ashlar/memory.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "gpu.hpp"

namespace ashlar::bench {

// On a GPU a sample is one `run` between two CUDA events, after an L2 flush that takes longer than
// the host needs to enqueue `run`. On the CPU it is as many runs as fill 0.5 ms.
class Side {
 public:
  Side(std::function<void()> run, const Gpu* gpu);
  void sample();
  double median_seconds() const;
  double first_seconds() const { return first_; }  // of the warm-up run in the constructor

 private:
  std::function<void()> run_;
  const Gpu* gpu_;
  std::optional<Timer> timer_;
  std::int64_t repeats_ = 1;
  bool warm_ = false;
  double first_ = 0;
  std::vector<double> times_;
};

std::optional<double> median_of(const std::unique_ptr<Side>& side);  // absent for null

}  // namespace ashlar::bench
