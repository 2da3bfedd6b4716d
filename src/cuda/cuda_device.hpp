// The GPUs of this machine, as plain values.
#pragma once

#include <ashlar/device.hpp>
#include <optional>

namespace ashlar::cuda {

// How many there are; 0 without a driver.
int device_count();
// The one whose context is current in this thread; nothing without a driver or a context.
std::optional<int> current_ordinal();
// Throws Error(device) with the reason when it cannot be used.
DeviceProps detect_gpu(int ordinal);

}  // namespace ashlar::cuda
