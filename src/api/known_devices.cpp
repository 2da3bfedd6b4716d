// Properties of known devices.
#include "api/known_devices.hpp"

#include "cuda/known_gpus.hpp"

namespace ashlar {

namespace {

DeviceProps cpu_device(const char* name, const char* description, int threads,
                       std::int64_t vector_bytes, double giga_f32, double gigabytes_per_second) {
  DeviceProps props;
  props.name = name;
  props.description = description;
  props.compute_units = threads;
  props.vector_bytes = vector_bytes;
  props.flops_f32 = props.flops_f16 = giga_f32 * 1e9;
  props.bytes_per_second = gigabytes_per_second * 1e9;
  props.launch_seconds = 5e-6;
  return props;
}

}  // namespace

const std::vector<DeviceProps>& known_devices() {
  static const std::vector<DeviceProps> devices = [] {
    std::vector<DeviceProps> all = cuda::known_gpus();
    all.push_back(cpu_device("cpu-avx2-8", "a desktop with 8 threads, AVX2", 8, 32, 640, 40));
    all.push_back(
        cpu_device("cpu-avx512-32", "a server with 32 threads, AVX-512", 32, 64, 5120, 200));
    return all;
  }();
  return devices;
}

}  // namespace ashlar
