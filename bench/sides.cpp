#include "sides.hpp"

#include <algorithm>
#include <cmath>

#include "clock.hpp"
#include "statistics.hpp"

namespace ashlar::bench {

namespace {

// A sample on the processor is at least this long, so that the clock and the call do not show in
// it.
constexpr double kLeastSample = 500e-6;
// Before the samples of runs shorter than this there is one that does not count: the side before
// it has filled the caches with its own.
constexpr double kWarmBelow = 3e-3;

}  // namespace

Side::Side(std::function<void()> run, const Gpu* gpu) : run_(std::move(run)), gpu_(gpu) {
  if (gpu) {
    timer_.emplace(gpu->device());
    timer_->start();
    run_();
    timer_->stop();
    first_ = timer_->seconds();
    return;
  }
  const Clock::time_point start = Clock::now();
  run_();
  first_ = seconds_since(start);
  warm_ = first_ < kWarmBelow;
  repeats_ = std::max<std::int64_t>(1, std::llround(std::ceil(kLeastSample / first_)));
}

void Side::sample() {
  if (gpu_) {
    gpu_->flush();
    timer_->start();
    run_();
    timer_->stop();
    times_.push_back(timer_->seconds());
    return;
  }
  if (warm_) run_();
  const Clock::time_point start = Clock::now();
  for (std::int64_t i = 0; i < repeats_; ++i) run_();
  times_.push_back(seconds_since(start) / static_cast<double>(repeats_));
}

double Side::median_seconds() const { return median(times_); }

std::optional<double> median_of(const std::unique_ptr<Side>& side) {
  return side ? std::optional(side->median_seconds()) : std::nullopt;
}

}  // namespace ashlar::bench
