// Which context work goes to.
#pragma once

#include "cuda/driver/driver_api.hpp"

namespace ashlar::cuda {

// Makes a context current for a scope: the caller's own where there is one for this device (a
// program's or PyTorch's), else the device's primary context, which is kept from then on. In a
// thread that has no context the first device's stays current, which is what such a thread means
// to CUDA's runtime too: every later scope is one question to the driver.
class ContextScope {
 public:
  explicit ContextScope(DeviceOrdinal device);
  ~ContextScope() {
    if (pushed_) pop();
  }
  ContextScope(const ContextScope&) = delete;
  ContextScope& operator=(const ContextScope&) = delete;

  // The context is the device's primary one.
  bool is_primary() const { return is_primary_; }

 private:
  void enter(DeviceOrdinal device, ContextHandle current);
  static void pop();
  bool pushed_ = false, is_primary_ = false;
};

}  // namespace ashlar::cuda
