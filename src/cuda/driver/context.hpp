// Which context work goes to, and memory in it.
#pragma once

#include <cstddef>

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

// Device memory, given back at the end of its life.
class DeviceMemory {
 public:
  DeviceMemory() = default;
  DeviceMemory(DeviceOrdinal device, std::size_t bytes);  // throws Error(out_of_memory)
  ~DeviceMemory();
  DeviceMemory(DeviceMemory&& other) noexcept;
  DeviceMemory& operator=(DeviceMemory&& other) noexcept;

  std::byte* data() const { return reinterpret_cast<std::byte*>(address_); }
  std::size_t bytes() const { return bytes_; }

 private:
  DeviceAddress address_ = 0;
  std::size_t bytes_ = 0;
  DeviceOrdinal device_ = 0;
};

}  // namespace ashlar::cuda
