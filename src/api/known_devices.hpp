// Properties of known devices, for explaining plans where the device is not present.
#pragma once

#include <ashlar/device.hpp>
#include <vector>

namespace ashlar {

const std::vector<DeviceProps>& known_devices();

}  // namespace ashlar
