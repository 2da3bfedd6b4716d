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

Device Device::best() { return cpu(); }

namespace {

// N of "cuda:N", 0 for "cuda", nothing for any other name.
std::optional<int> gpu_ordinal(std::string_view name) {
  if (name == "cuda") return 0;
  if (!name.starts_with("cuda:")) return std::nullopt;
  name.remove_prefix(5);
  int ordinal = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), ordinal);
  if (error != std::errc() || end != name.data() + name.size() || name.empty()) return std::nullopt;
  return ordinal;
}

}  // namespace

Device Device::named(std::string_view name) {
  if (name == "cpu") return cpu();
  if (const auto ordinal = gpu_ordinal(name)) return Device(cuda::detect_gpu(*ordinal));
  if (name == "best") return best();
  for (const DeviceProps& props : known_devices())
    if (props.name == name) return Device(props);
  std::string known;
  for (const std::string& other : known_names()) known += (known.empty() ? "" : ", ") + other;
  fail(ErrorCode::invalid_argument, "device: got '{}', expected one of: {}", name, known);
}

std::vector<std::string> Device::known_names() {
  std::vector<std::string> names = {"cpu"};
  for (int i = 0; i < cuda::device_count(); ++i) names.push_back("cuda:" + std::to_string(i));
  for (const DeviceProps& props : known_devices()) names.push_back(props.name);
  return names;
}

}  // namespace ashlar
