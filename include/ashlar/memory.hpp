// Memory of a device, and the time its work takes: what a program needs that has no other way to
// reach a GPU. Plans take any device pointers; these are a convenience.
#pragma once

#include <ashlar/device.hpp>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace ashlar {

// Bytes on a device (on the host for a processor), aligned to 64 at least. Throws
// Error(out_of_memory), Error(device) for a device that is not present.
class Memory {
 public:
  Memory(const Device& device, std::int64_t bytes);
  ~Memory();
  Memory(Memory&& other) noexcept;
  Memory& operator=(Memory&& other) noexcept;

  void* data() const;
  std::int64_t bytes() const;
  // From the first byte on, after all work of the default stream; done on return. Throw
  // Error(invalid_argument) for more bytes than there are.
  void upload(const void* host, std::int64_t bytes);
  void download(void* host, std::int64_t bytes) const;
  void fill(std::byte value);

 private:
  struct Data;
  std::unique_ptr<Data> data_;
};

// Waits until everything given to the stream is done. `stream` is a CUstream; null is the default
// stream. A processor has nothing to wait for.
void synchronize(const Device& device, void* stream = nullptr);

// The time from one point of a stream's work to another, as the device measures it.
class Timer {
 public:
  explicit Timer(const Device& device);
  ~Timer();
  Timer(Timer&& other) noexcept;
  Timer& operator=(Timer&& other) noexcept;

  void start(void* stream = nullptr);
  void stop(void* stream = nullptr);
  double seconds() const;  // waits until the second point is reached

 private:
  struct Data;
  std::unique_ptr<Data> data_;
};

}  // namespace ashlar
