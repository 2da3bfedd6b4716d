// The largest of many numbers found by several threads.
#pragma once

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

}  // namespace ashlar::reference
