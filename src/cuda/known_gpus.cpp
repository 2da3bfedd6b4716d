#include "cuda/known_gpus.hpp"

#include <cctype>

namespace ashlar::cuda {

namespace {

// Shared memory in KiB: opt-in maximum per CTA, and per SM.
struct SharedMemory {
  std::int64_t of_block, of_sm;
};
SharedMemory shared_memory_of(int compute_capability) {
  switch (compute_capability) {
    case 75: return {64, 64};
    case 80: return {163, 164};
    case 90:
    case 100: return {227, 228};
    default: return {99, 100};  // 8.6, 8.9, 12.0
  }
}

// From the vendor's data sheets: dense tensor-core rate for f16, vector rate for f32.
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
  const SharedMemory shared = shared_memory_of(compute_capability);
  props.shared_bytes = shared.of_block << 10;
  props.l1_bytes = shared.of_sm << 10;
  props.launch_seconds = 3e-6;
  return props;
}

// The driver's name for it: the description up to its first comma or form factor.
std::string_view driver_name_of(const DeviceProps& props) {
  std::string_view text = props.description;
  text = text.substr(0, text.find(','));
  return text.substr(0, text.find(" SXM"));
}

}  // namespace

const std::vector<DeviceProps>& known_gpus() {
  static const std::vector<DeviceProps> gpus = {
      gpu("h200", "NVIDIA H200 SXM, 132 SMs, 141 GB", 90, 132, 67, 989, 4.8, 60),
      gpu("h100", "NVIDIA H100 SXM, 132 SMs, 80 GB", 90, 132, 67, 989, 3.35, 50),
      gpu("a100", "NVIDIA A100 SXM, 108 SMs, 80 GB", 80, 108, 19.5, 312, 2.04, 40),
      gpu("l4", "NVIDIA L4, 58 SMs, 24 GB", 89, 58, 30.3, 121, 0.3, 48),
      gpu("rtx4090", "NVIDIA GeForce RTX 4090, 128 SMs, 24 GB", 89, 128, 82.6, 165, 1.01, 72),
      gpu("b200", "NVIDIA B200, 148 SMs, 180 GB", 100, 148, 75, 2250, 8.0, 126),
      gpu("rtx5090", "NVIDIA GeForce RTX 5090, 170 SMs, 32 GB", 120, 170, 104.8, 210, 1.79, 96),
      gpu("a10", "NVIDIA A10, 72 SMs, 24 GB", 86, 72, 31.2, 125, 0.6, 6),
      gpu("t4", "Tesla T4, 40 SMs, 16 GB", 75, 40, 8.1, 65, 0.32, 4),
  };
  return gpus;
}

const DeviceProps* find_known_gpu(std::string_view driver_name, int sm_count) {
  for (const DeviceProps& props : known_gpus()) {
    const std::string_view name = driver_name_of(props);
    if (!driver_name.starts_with(name) || props.compute_units != sm_count) continue;
    const bool ends_there = driver_name.size() == name.size() ||
                            std::isalnum(static_cast<unsigned char>(driver_name[name.size()])) == 0;
    if (ends_there) return &props;
  }
  return nullptr;
}

}  // namespace ashlar::cuda
