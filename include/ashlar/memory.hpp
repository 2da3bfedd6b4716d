// Device memory and timing for programs that use no other GPU API. A convenience: plans accept any
// device pointer.
#pragma once

#include <ashlar/device.hpp>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace ashlar {

#pragma GCC visibility push(default)

// A device allocation (host memory for the CPU), at least 64-byte aligned, freed on destruction.
// Throws Error(out_of_memory), or Error(device) for a device that is not present.
class Memory {
 public:
  Memory(const Device& device, std::int64_t bytes);
  ~Memory();
  Memory(Memory&& other) noexcept;
  Memory& operator=(Memory&& other) noexcept;

  void* data() const;
  std::int64_t bytes() const;
  // Copies start at the first byte, after all work of the default stream, and are complete on
  // return. Throw Error(invalid_argument) if `bytes` exceeds the allocation.
  void upload(const void* host, std::int64_t bytes);
  void download(void* host, std::int64_t bytes) const;
  void fill(std::byte value);

 private:
  struct Data;
  std::unique_ptr<Data> data_;
};

// Elapsed device time between two points of a stream (CUDA events on a GPU).
class Timer {
 public:
  explicit Timer(const Device& device);
  ~Timer();
  Timer(Timer&& other) noexcept;
  Timer& operator=(Timer&& other) noexcept;

  void start(void* stream = nullptr);
  void stop(void* stream = nullptr);
  double seconds() const;  // blocks until stop() has been reached

 private:
  struct Data;
  std::unique_ptr<Data> data_;
};

#pragma GCC visibility pop

}  // namespace ashlar
