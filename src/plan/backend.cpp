// OwnedMemory.
#include "plan/backend.hpp"

#include <algorithm>
#include <utility>

namespace ashlar {

OwnedMemory::OwnedMemory(const DeviceProps& device, std::int64_t bytes)
    : device_(device), bytes_(bytes) {
  // A size of 0 still gets a valid pointer.
  data_ = backend(device.kind).allocate(device, std::max(bytes, kWorkspaceAlignment));
}

OwnedMemory::~OwnedMemory() {
  if (data_ != nullptr)
    backend(device_.kind).release(device_, data_, std::max(bytes_, kWorkspaceAlignment));
}

OwnedMemory::OwnedMemory(OwnedMemory&& other) noexcept { *this = std::move(other); }

OwnedMemory& OwnedMemory::operator=(OwnedMemory&& other) noexcept {
  std::swap(device_, other.device_);
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

}  // namespace ashlar
