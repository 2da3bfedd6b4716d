// A table of GPUs, to plan and compile without one.
#pragma once

#include <ashlar/device.hpp>
#include <string_view>
#include <vector>

namespace ashlar::cuda {

// The first GPU of an architecture represents it.
const std::vector<DeviceProps>& known_gpus();

// The known GPU with this driver name and number of SMs; null: none. "NVIDIA H100 80GB HBM3" is an
// h100, "NVIDIA L40" is not an l4.
const DeviceProps* find_known_gpu(std::string_view driver_name, int sm_count);

}  // namespace ashlar::cuda
