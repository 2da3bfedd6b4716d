// One side of a comparison, sampled.
#pragma once

#include <ashlar/memory.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "gpu.hpp"

namespace ashlar::bench {

// `run` once per sample on a GPU, between two of its events, after the caches were flushed, which
// `flushes` times lasts longer than the host needs for `run`; on the processor as often as fills a
// sample that the clock can measure.
class Side {
 public:
  Side(std::function<void()> run, const Gpu* gpu);
  void sample();
  double median_seconds() const;
  double first_seconds() const { return first_; }  // of the run that came before the samples

 private:
  std::function<void()> run_;
  const Gpu* gpu_;
  std::optional<Timer> timer_;
  std::int64_t repeats_ = 1;
  bool warm_ = false;
  double first_ = 0;
  std::vector<double> times_;
};

std::optional<double> median_of(const std::unique_ptr<Side>& side);  // null: absent

}  // namespace ashlar::bench
