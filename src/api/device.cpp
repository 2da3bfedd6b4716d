// Device: the CPU, detected GPUs and known devices by name.
#include <fmt/ranges.h>

#include <ashlar/device.hpp>
#include <charconv>
#include <optional>

#include "api/known_devices.hpp"
#include "base/fail.hpp"
#include "cpu/cpu_device.hpp"
#include "cuda/cuda_device.hpp"

namespace ashlar {

Device::Device(DeviceProps props) : props_(std::move(props)) {}

Device Device::cpu() {
  static const DeviceProps props = cpu::detect_cpu();
  return Device(props);
}

Device Device::best() { return cuda::device_count() > 0 ? Device(cuda::detect_gpu(0)) : cpu(); }

namespace {

// "cuda" or "cuda:N", else nothing.
std::optional<int> gpu_ordinal(std::string_view name) {
  constexpr std::string_view kKind = "cuda";
  if (!name.starts_with(kKind)) return {};
  name.remove_prefix(kKind.size());
  if (name.empty()) return 0;
  int ordinal = 0;
  const auto [end, error] = std::from_chars(name.data() + 1, name.data() + name.size(), ordinal);
  const bool is_number = name[0] == ':' && error == std::errc() && end == name.data() + name.size();
  return is_number ? std::optional(ordinal) : std::nullopt;
}

}  // namespace

Device Device::named(std::string_view name) {
  if (name == "cpu") return cpu();
  if (name == "best") return best();
  if (const auto ordinal = gpu_ordinal(name)) {
    if (*ordinal >= 0 && *ordinal < cuda::device_count()) return Device(cuda::detect_gpu(*ordinal));
    fail(ErrorCode::invalid_argument, "device: '{}' is not present here ({}); known are: {}", name,
         cuda::absence_reason(), fmt::format("{}", fmt::join(known_names(), ", ")));
  }
  for (const DeviceProps& props : known_devices())
    if (props.name == name) return Device(props);
  fail(ErrorCode::invalid_argument, "device: got '{}', expected one of: {}", name,
       fmt::format("{}", fmt::join(known_names(), ", ")));
}

std::vector<std::string> Device::known_names() {
  std::vector<std::string> names = {"cpu"};
  for (int i = 0; i < cuda::device_count(); ++i) names.push_back(fmt::format("cuda:{}", i));
  for (const DeviceProps& props : known_devices()) names.push_back(props.name);
  return names;
}

}  // namespace ashlar
