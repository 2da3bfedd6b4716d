// The GPUs of this machine, as plain values.
#pragma once

#include <ashlar/device.hpp>

namespace ashlar::cuda {

// How many there are; 0 without a driver.
int device_count();
// Throws Error(device) with the reason when it cannot be used.
DeviceProps detect_gpu(int ordinal);

}  // namespace ashlar::cuda
