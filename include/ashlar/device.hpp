// The device that a plan is compiled for, and copies to and from its memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ashlar {

#pragma GCC visibility push(default)

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

  // The GPU whose context is current in the calling thread, else best(). Creates no context.
  static Device current();

  const DeviceProps& props() const { return props_; }

  // Copies between host memory and memory of the device (both host memory for the CPU), ordered
  // after earlier work of the stream and complete on return. `stream`, here and below, is a
  // CUstream, null for the default stream; the CPU ignores it. Throw Error(device) for driver
  // errors.
  void upload(void* to, const void* from_host, std::int64_t bytes, void* stream = nullptr) const;
  void download(void* to_host, const void* from, std::int64_t bytes, void* stream = nullptr) const;
  // Stream-ordered and asynchronous: may not have completed on return. `words` (lengths, offsets,
  // labels) may be reused on return. Both may be captured into a CUDA graph, which keeps the
  // values.
  void enqueue_upload(void* to, std::span<const std::int32_t> words, void* stream = nullptr) const;
  void enqueue_fill(void* to, std::byte value, std::int64_t bytes, void* stream = nullptr) const;
  // Blocks until all work enqueued on the stream is complete. Returns immediately on the CPU.
  // Throws Error(device) for a device that is not present.
  void synchronize(void* stream = nullptr) const;

 private:
  DeviceProps props_;
};

#pragma GCC visibility pop

}  // namespace ashlar
