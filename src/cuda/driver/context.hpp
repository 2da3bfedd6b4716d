// The CUDA context in which work is enqueued.
#pragma once

#include "cuda/driver/driver_api.hpp"

namespace ashlar::cuda {

// Makes a context current for a scope: the caller's own where it belongs to this device (the
// application's or PyTorch's), else the device's primary context, which stays retained. In a thread
// without a context, device 0's primary context stays current, as it does with the CUDA runtime:
// every later scope is a single driver query.
class ContextScope {
 public:
  explicit ContextScope(DeviceOrdinal device);
  ~ContextScope() {
    if (pushed_) pop();
  }
  ContextScope(const ContextScope&) = delete;
  ContextScope& operator=(const ContextScope&) = delete;

  // Whether the context is the device's primary one.
  bool is_primary() const { return is_primary_; }

 private:
  void enter(DeviceOrdinal device, ContextHandle current);
  static void pop();
  bool pushed_ = false, is_primary_ = false;
};

}  // namespace ashlar::cuda
