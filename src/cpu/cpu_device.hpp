// The processor this process runs on, as plain values.
#pragma once

#include <ashlar/device.hpp>

namespace ashlar::cpu {

DeviceProps detect_cpu();

}  // namespace ashlar::cpu
