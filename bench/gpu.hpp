// The GPU under test: its copy bandwidth and peak arithmetic, and the L2 flush before a sample.
#pragma once

#include <ashlar/device.hpp>
#include <ashlar/graph.hpp>
#include <ashlar/memory.hpp>
#include <cstdint>
#include <memory>
#include <string>

namespace ashlar::bench {

// Sizes of the flush and of the copy-bandwidth test; tests use smaller ones.
struct GpuBytes {
  std::int64_t flush = 256 << 20;  // read: several times any L2 cache
  std::int64_t copy = 1 << 30;
};

class Gpu {
 public:
  // Compiles a few kernels; throws Error if the device is absent.
  explicit Gpu(const Device& device, const GpuBytes& bytes = {});
  ~Gpu();

  const Device& device() const { return device_; }
  // "driver 580.65.06, CUDA 13.0", without the parts that are unknown.
  const std::string& driver() const { return driver_; }

  // Bandwidth of large copies, reads plus writes: the better of our pointwise kernel and
  // cuMemcpyDtoD, each a median. Measured once.
  double copy_speed();

  // Enqueues a kernel on the default stream that evicts everything from the L2 cache. It reads, so
  // that the next kernel waits for no write-back, and it runs longer than the host needs to launch
  // that kernel.
  void flush() const;

  // Peak operations per second for a graph: of tensor cores for 16-bit and 8-bit operands and, if
  // `tf32`, for f32; otherwise of FMA units.
  double peak(const Graph& graph, bool tf32) const;

  // Device-to-device copy by the driver. False if the driver lacks it or it failed.
  bool copy(void* to, const void* from, std::int64_t bytes, void* stream = nullptr) const;

  // Fills memory with repetitions of its first `pattern` bytes. False if copy() failed.
  bool repeat(const ashlar::Memory& memory, std::int64_t pattern) const;

  // Throws Error if the CUDA context is lost, for example after an illegal memory access.
  void require_alive() const;

 private:
  struct DriverFunctions;
  struct Flush;
  const Device device_;
  const GpuBytes bytes_;
  std::unique_ptr<DriverFunctions> functions_;
  std::string driver_;
  std::unique_ptr<Flush> flush_;
  double copy_speed_ = 0;
};

// A copy with a given traffic, half of it reads and half writes: the bandwidth that a kernel of the
// same traffic could reach. Callers time all methods and take the fastest.
class GpuCopy {
 public:
  // `slots`: number of disjoint source and destination buffers.
  GpuCopy(const Gpu& gpu, std::int64_t bytes, int slots = 1);
  ~GpuCopy();

  int methods() const {
    return methods_;
  }  // 0: our pointwise kernel; 1, if available: cuMemcpyDtoD
  int slots() const { return slots_; }
  std::int64_t half() const;  // bytes read, and bytes written
  void* from(int slot) const;
  void* to(int slot) const;
  // Throws Error if the driver's copy fails.
  void run(int method, int slot = 0, void* stream = nullptr) const;

 private:
  struct Buffers;
  const Gpu& gpu_;
  std::unique_ptr<const Buffers> buffers_;
  int methods_ = 1, slots_ = 1;
};

}  // namespace ashlar::bench
