// GPUs whose properties are known without having one.
#pragma once

#include <ashlar/device.hpp>
#include <string_view>
#include <vector>

namespace ashlar::cuda {

// The first of an architecture stands for it.
const std::vector<DeviceProps>& known_gpus();

// The known GPU that the driver calls by this name, with as many multiprocessors; null: none.
// "NVIDIA H100 80GB HBM3" is an h100, "NVIDIA L40" no l4.
const DeviceProps* find_known_gpu(std::string_view driver_name, int sm_count);

}  // namespace ashlar::cuda
