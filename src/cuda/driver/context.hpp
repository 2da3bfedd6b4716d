// Which context work goes to.
#pragma once

#include "cuda/driver/driver_api.hpp"

namespace ashlar::cuda {

// Makes a context current for a scope: the caller's own where there is one for this device (a
// program's or PyTorch's), else the device's primary context, which is kept from then on.
class ContextScope {
 public:
  explicit ContextScope(DeviceOrdinal device);
  ~ContextScope();
  ContextScope(const ContextScope&) = delete;
  ContextScope& operator=(const ContextScope&) = delete;

 private:
  bool pushed_ = false;
};

}  // namespace ashlar::cuda
