#include "cuda/driver/context.hpp"

#include <array>
#include <mutex>

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

}  // namespace ashlar::cuda
