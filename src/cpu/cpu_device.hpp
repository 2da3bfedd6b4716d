// Detects the properties of the host CPU.
#pragma once

#include <ashlar/device.hpp>

namespace ashlar::cpu {

DeviceProps detect_cpu();

}  // namespace ashlar::cpu
