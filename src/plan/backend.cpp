// OwnedMemory.
#include "plan/backend.hpp"

#include <algorithm>
#include <utility>

namespace ashlar {

OwnedMemory::OwnedMemory(const Backend& backend, const DeviceProps& device, std::int64_t bytes)
    : backend_(&backend), device_(device), bytes_(bytes) {
  // A size of 0 still gets a valid pointer.
  data_ = backend.allocate(device, std::max(bytes, kWorkspaceAlignment));
}

OwnedMemory::~OwnedMemory() {
  if (data_ != nullptr) backend_->release(device_, data_, std::max(bytes_, kWorkspaceAlignment));
}

OwnedMemory::OwnedMemory(OwnedMemory&& other) noexcept { *this = std::move(other); }

OwnedMemory& OwnedMemory::operator=(OwnedMemory&& other) noexcept {
  std::swap(backend_, other.backend_);
  std::swap(device_, other.device_);
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

}  // namespace ashlar
