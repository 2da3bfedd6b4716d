// Device: the CPU, detected GPUs and known devices by name; copies on top of the backends.
#include <fmt/ranges.h>

#include <ashlar/device.hpp>
#include <charconv>
#include <optional>

#include "api/backends.hpp"
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

Device Device::current() {
  if (const auto ordinal = cuda::current_ordinal()) return Device(cuda::detect_gpu(*ordinal));
  return best();
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

void Device::upload(void* to, const void* from_host, std::int64_t bytes, void* stream) const {
  backend_for(props_.kind).upload(props_, to, from_host, bytes, stream);
}

void Device::download(void* to_host, const void* from, std::int64_t bytes, void* stream) const {
  backend_for(props_.kind).download(props_, to_host, from, bytes, stream);
}

void Device::enqueue_upload(void* to, std::span<const std::int32_t> words, void* stream) const {
  backend_for(props_.kind).enqueue_upload(props_, to, words, stream);
}

void Device::enqueue_fill(void* to, std::byte value, std::int64_t bytes, void* stream) const {
  backend_for(props_.kind).fill(props_, to, value, bytes, stream);
}

void Device::synchronize(void* stream) const {
  if (!props_.present)
    fail(ErrorCode::device, "synchronize: device '{}' is not present here", props_.name);
  backend_for(props_.kind).synchronize(props_, stream);
}

}  // namespace ashlar
