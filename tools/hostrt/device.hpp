// The only device: the host, reported as a GPU of compute capability 9.0.
#pragma once

#include <cstddef>

#include "cuda_runtime_api.h"

namespace ashlar::hostrt {

inline constexpr int kDeviceCount = 1;
inline constexpr int kLeastPriority = 0;
inline constexpr int kGreatestPriority = -5;

inline bool is_device(int device) { return device >= 0 && device < kDeviceCount; }

size_t total_memory();  // bytes of the host
size_t free_memory();   // available to a new allocation, in bytes
int cpu_count();
const cudaDeviceProp& device_properties();  // in the layout of CUDA 13

}  // namespace ashlar::hostrt
