// What a plan is made for.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ashlar {

enum class DeviceKind : std::uint8_t { cpu, cuda };

// Facts about a processor, as plain values: engines choose from these and nothing else, so plans
// can be explained for a device that is not there.
struct DeviceProps {
  DeviceKind kind = DeviceKind::cpu;
  std::string name;                // "cpu", "h200"
  std::string description;         // "Intel Xeon, AVX-512, 2 threads"
  bool present = false;            // whether it can run here
  int compute_units = 1;           // threads or SMs
  std::int64_t vector_bytes = 16;  // SIMD width (CPU)
  std::int64_t l1_bytes = 32 << 10;
  std::int64_t l2_bytes = 1 << 20;
  std::int64_t l3_bytes = 8 << 20;
  double flops_f32 = 1e10;  // peak multiply-add rate, per second, counting 2 per multiply-add
  double flops_f16 = 1e10;  // the same for f16/bf16 inputs
  double bytes_per_second = 1e10;        // streaming memory bandwidth
  double launch_seconds = 1e-6;          // fixed cost of one kernel
  int compute_capability = 0;            // CUDA: 90 for sm_90
  int ordinal = 0;                       // CUDA: which of the GPUs of this machine
  std::int64_t shared_bytes = 48 << 10;  // CUDA: shared memory a block may have
};

class Device {
 public:
  static Device cpu();
  static Device best();  // the fastest device that is present: a GPU where there is one
  // "cpu", "cuda:0", or a known device such as "h200", which need not be present; throws
  // Error(invalid_argument) listing the known names, Error(device) for a GPU that is not there.
  static Device named(std::string_view name);
  static std::vector<std::string> known_names();
  explicit Device(DeviceProps props);

  const DeviceProps& props() const { return props_; }

 private:
  DeviceProps props_;
};

}  // namespace ashlar
