#include "sides.hpp"

#include <algorithm>
#include <cmath>

#include "clock.hpp"
#include "statistics.hpp"

namespace ashlar::bench {

namespace {

// Minimum seconds of a CPU sample: hides clock resolution and call overhead.
constexpr double kMinSample = 500e-6;
// Runs shorter than this get one untimed warm-up per sample: the previous side has replaced the
// cache contents.
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
  repeats_ = std::max<std::int64_t>(1, std::llround(std::ceil(kMinSample / first_)));
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
