// A GPU under measurement: what its memory gives at best, and how to start a sample with cold
// caches.
#pragma once

#include <ashlar/device.hpp>
#include <ashlar/graph.hpp>
#include <ashlar/memory.hpp>
#include <cstdint>
#include <memory>
#include <string>

namespace ashlar::bench {

// How much is moved, where one does not want to wait for it.
struct GpuBytes {
  std::int64_t flush = 256 << 20;  // read: several times any L2 cache
  std::int64_t copy = 1 << 30;
};

class Gpu {
 public:
  // Compiles a few kernels; throws Error for a device that is not there.
  explicit Gpu(const Device& device, const GpuBytes& bytes = {});
  ~Gpu();

  const Device& device() const { return device_; }
  // "driver 580.65, CUDA 13.0"; what is known of it.
  const std::string& driver() const { return driver_; }

  // Bytes per second of large copies, read and written ones counted: the better of our own
  // pointwise kernel and the driver's copy from device memory to device memory, each a median.
  // Measured once.
  double copy_speed();

  // Gives the default stream work that pushes everything out of the L2 cache. It reads, so that
  // nothing is left there that the next kernel would have to wait for until it is written, and
  // lasts longer than the host needs to launch that kernel.
  void flush() const;

  // Operations per second that a graph could reach: of tensor cores for products of 16 or 8 bits
  // and, where that is allowed, of f32 rounded to tf32; else of vector arithmetic.
  double peak(const Graph& graph, bool tf32) const;

  // Bytes from one place of its memory to another, by the driver. False: it offers no copy, or none
  // on this stream.
  bool copy(void* to, const void* from, std::int64_t bytes, void* stream = nullptr) const;

  // Fills memory with repetitions of its first `pattern` bytes. False: the driver offers no copy.
  bool repeat(const ashlar::Memory& memory, std::int64_t pattern) const;

  // Throws Error when the GPU no longer does any work: an access outside of memory ends everything.
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

// A copy that moves so many bytes, half of them read and half written: what a kernel that moves as
// many could reach. Whoever times it takes the better way.
class GpuCopy {
 public:
  // `places`: so many copies can be told apart, each reads and writes memory of its own.
  GpuCopy(const Gpu& gpu, std::int64_t bytes, int places = 1);
  ~GpuCopy();

  int ways() const { return ways_; }  // our own pointwise kernel; where it offers one, the driver's
  int places() const { return places_; }
  std::int64_t half() const;  // bytes that are read, and bytes that are written
  void* from(int place) const;
  void* to(int place) const;
  // Throws Error where the driver refuses.
  void run(int way, int place = 0, void* stream = nullptr) const;

 private:
  struct Buffers;
  const Gpu& gpu_;
  std::unique_ptr<const Buffers> buffers_;
  int ways_ = 1, places_ = 1;
};

}  // namespace ashlar::bench
