// Processors that plans can be explained for without having one.
#pragma once

#include <ashlar/device.hpp>
#include <vector>

namespace ashlar {

const std::vector<DeviceProps>& known_devices();

}  // namespace ashlar
