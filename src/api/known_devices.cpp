#include "api/known_devices.hpp"

namespace ashlar {

namespace {

// From the vendors' data sheets: dense tensor-core rate for f16, vector rate for f32.
// What a block may have; a multiprocessor has 1 more, which the system takes for each block.
std::int64_t shared_kibibytes(int compute_capability) {
  switch (compute_capability) {
    case 80: return 163;
    case 90:
    case 100: return 227;
    default: return 99;
  }
}

DeviceProps gpu(const char* name, const char* description, int compute_capability, int sms,
                double tera_f32, double tera_f16, double terabytes_per_second,
                std::int64_t l2_mebibytes) {
  DeviceProps props;
  props.kind = DeviceKind::cuda;
  props.name = name;
  props.description = description;
  props.compute_capability = compute_capability;
  props.compute_units = sms;
  props.flops_f32 = tera_f32 * 1e12;
  props.flops_f16 = tera_f16 * 1e12;
  props.bytes_per_second = terabytes_per_second * 1e12;
  props.l2_bytes = l2_mebibytes << 20;
  props.launch_seconds = 3e-6;
  props.shared_bytes = shared_kibibytes(compute_capability) << 10;
  props.l1_bytes = props.shared_bytes + 1024;
  return props;
}

DeviceProps cpu(const char* name, const char* description, int threads, std::int64_t vector_bytes,
                double giga_f32, double gigabytes_per_second) {
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
  static const std::vector<DeviceProps> devices = {
      gpu("h200", "NVIDIA H200 SXM, 132 SMs, 141 GB", 90, 132, 67, 989, 4.8, 50),
      gpu("h100", "NVIDIA H100 SXM, 132 SMs, 80 GB", 90, 132, 67, 989, 3.35, 50),
      gpu("a100", "NVIDIA A100 SXM, 108 SMs, 80 GB", 80, 108, 19.5, 312, 2.04, 40),
      gpu("l4", "NVIDIA L4, 58 SMs, 24 GB", 89, 58, 30.3, 121, 0.3, 48),
      gpu("rtx4090", "NVIDIA GeForce RTX 4090, 128 SMs, 24 GB", 89, 128, 82.6, 165, 1.01, 72),
      gpu("b200", "NVIDIA B200, 148 SMs, 180 GB", 100, 148, 75, 2250, 8.0, 126),
      gpu("rtx5090", "NVIDIA GeForce RTX 5090, 170 SMs, 32 GB", 120, 170, 104.8, 210, 1.79, 96),
      cpu("cpu-avx2-8", "a desktop with 8 threads, AVX2", 8, 32, 640, 40),
      cpu("cpu-avx512-32", "a server with 32 threads, AVX-512", 32, 64, 5120, 200),
  };
  return devices;
}

}  // namespace ashlar
