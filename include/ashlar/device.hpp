// The device that a plan is compiled for.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ashlar {

enum class DeviceKind : std::uint8_t { cpu, cuda };

// Properties of a device. Engine selection depends on these values alone, so plans can be explained
// for a device that is not present.
struct DeviceProps {
  DeviceKind kind = DeviceKind::cpu;
  std::string name;                // "cpu", "h200"
  std::string description;         // "Intel Xeon, AVX-512, 2 threads"
  bool present = false;            // whether plans can run on it in this process
  int compute_units = 1;           // CPU: threads; CUDA: SMs
  std::int64_t vector_bytes = 16;  // SIMD width (CPU)
  std::int64_t l1_bytes = 32 << 10;
  std::int64_t l2_bytes = 1 << 20;
  std::int64_t l3_bytes = 8 << 20;
  double flops_f32 = 1e10;               // peak FLOP/s, 2 per multiply-add
  double flops_f16 = 1e10;               // the same for f16/bf16 inputs
  double bytes_per_second = 1e10;        // streaming memory bandwidth
  double launch_seconds = 1e-6;          // fixed cost of one kernel launch
  int compute_capability = 0;            // CUDA: 90 for sm_90
  int ordinal = 0;                       // CUDA: device ordinal in this process
  std::int64_t shared_bytes = 48 << 10;  // CUDA: maximum shared memory per CTA
};

class Device {
 public:
  static Device cpu();
  static Device best();  // the fastest device present: a GPU if there is one, else the CPU
  // "cpu", "cuda:0", or a known device such as "h200", which need not be present. Throws
  // Error(invalid_argument), listing the known names, for an unknown name or a GPU that is not
  // present, and Error(device) if the driver fails.
  static Device named(std::string_view name);
  static std::vector<std::string> known_names();
  explicit Device(DeviceProps props);

  const DeviceProps& props() const { return props_; }

 private:
  DeviceProps props_;
};

}  // namespace ashlar
