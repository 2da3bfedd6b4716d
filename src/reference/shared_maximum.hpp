// A maximum updated concurrently by several threads.
#pragma once

#include <atomic>
#include <mutex>

#include "reference/scalar.hpp"

namespace ashlar::reference {

template <class Scalar>
class SharedMaximum {
 public:
  void add(Scalar x) {
    const std::lock_guard lock(mutex_);
    largest_ = maximum(largest_, x);
  }
  Scalar largest() const { return largest_; }

 private:
  std::mutex mutex_;
  Scalar largest_ = Scalar(0.0);
};

// The engine path is lock-free.
template <>
class SharedMaximum<double> {
 public:
  void add(double x) {
    double seen = largest_.load(std::memory_order_relaxed);
    while (!std::isnan(seen) && !(x <= seen) &&
           !largest_.compare_exchange_weak(seen, x, std::memory_order_relaxed)) {
    }
  }
  double largest() const { return largest_.load(std::memory_order_relaxed); }

 private:
  std::atomic<double> largest_ = 0.0;
};

}  // namespace ashlar::reference
