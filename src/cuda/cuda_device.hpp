// The GPUs of this machine as DeviceProps.
#pragma once

#include <ashlar/device.hpp>
#include <optional>

namespace ashlar::cuda {

// Number of GPUs; 0 without a driver.
int device_count();
// Why there is no GPU beyond device_count(): "no NVIDIA driver: ...", "this machine has 1 GPU".
std::string absence_reason();
// The GPU whose context is current in this thread; none without a driver or a context.
std::optional<int> current_ordinal();
// Throws Error(device) with the reason when the GPU is unusable.
DeviceProps detect_gpu(int ordinal);

}  // namespace ashlar::cuda
