#include <ashlar/device.hpp>

#include "api/known_devices.hpp"
#include "base/fail.hpp"
#include "cpu/cpu_device.hpp"

namespace ashlar {

Device::Device(DeviceProps props) : props_(std::move(props)) {}

Device Device::cpu() {
  static const DeviceProps props = cpu::detect_cpu();
  return Device(props);
}

Device Device::best() { return cpu(); }

Device Device::named(std::string_view name) {
  if (name == "cpu") return cpu();
  if (name == "best") return best();
  for (const DeviceProps& props : known_devices())
    if (props.name == name) return Device(props);
  std::string known;
  for (const std::string& other : known_names()) known += (known.empty() ? "" : ", ") + other;
  fail(ErrorCode::invalid_argument, "device: got '{}', expected one of: {}", name, known);
}

std::vector<std::string> Device::known_names() {
  std::vector<std::string> names = {"cpu"};
  for (const DeviceProps& props : known_devices()) names.push_back(props.name);
  return names;
}

}  // namespace ashlar
