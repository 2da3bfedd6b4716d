#include "cuda/driver/context.hpp"

#include <array>
#include <mutex>
#include <utility>

#include "base/fail.hpp"

namespace ashlar::cuda {

namespace {

// Retained once per device; the driver gives it up when the process ends.
ContextHandle primary_context(DeviceOrdinal device) {
  constexpr int kMostDevices = 64;
  static std::array<std::once_flag, kMostDevices> once;
  static std::array<ContextHandle, kMostDevices> contexts{};
  if (device < 0 || device >= kMostDevices)
    fail(ErrorCode::device, "cuda: device {}: expected one below {}", device, kMostDevices);
  const auto i = static_cast<std::size_t>(device);
  std::call_once(once[i], [&] {
    check(driver_api().retain_primary_context(&contexts[i], device), "opening the GPU");
  });
  return contexts[i];
}

}  // namespace

ContextScope::ContextScope(DeviceOrdinal device) {
  const DriverApi& api = driver_api();
  ContextHandle current = nullptr;
  check(api.current_context(&current), "asking for the current context");
  if (current != nullptr) {
    DeviceOrdinal of_current = -1;
    if (api.context_device(&of_current) == Result::success && of_current == device) return;
  }
  check(api.push_context(primary_context(device)), "making the GPU current");
  pushed_ = true;
}

ContextScope::~ContextScope() {
  ContextHandle context = nullptr;
  if (pushed_) driver_api().pop_context(&context);
}

DeviceMemory::DeviceMemory(DeviceOrdinal device, std::size_t bytes)
    : bytes_(bytes), device_(device) {
  if (bytes == 0) return;
  const ContextScope scope(device);
  check(driver_api().allocate(&address_, bytes),
        fmt::format("allocating {} bytes on the GPU", bytes).c_str());
}

DeviceMemory::~DeviceMemory() {
  if (address_ == 0) return;
  // Nothing can be done about a failure: the memory goes with the process.
  try {
    const ContextScope scope(device_);
    driver_api().release(address_);
  } catch (const Error&) {
  }
}

DeviceMemory::DeviceMemory(DeviceMemory&& other) noexcept { *this = std::move(other); }

DeviceMemory& DeviceMemory::operator=(DeviceMemory&& other) noexcept {
  std::swap(address_, other.address_);
  std::swap(bytes_, other.bytes_);
  std::swap(device_, other.device_);
  return *this;
}

}  // namespace ashlar::cuda
