// What a plan asks of the kind of device it runs on: its engines, memory, and the order of its
// work. `stream` is a CUstream on a GPU; processors ignore it and do everything at once.
#pragma once

#include <ashlar/device.hpp>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

#include "plan/engine.hpp"

namespace ashlar {

// A point in a stream's work.
class Marker {
 public:
  virtual ~Marker() = default;
  virtual void record(void* stream) = 0;
  // Work given to `stream` from now on begins after this point; nothing where none was recorded.
  // Never makes the calling thread wait.
  virtual void stream_wait(void* stream) = 0;
  // Waits until both points are reached.
  virtual double seconds_since(const Marker& earlier) const = 0;
};

// Work that is given to a device at once, as often as wanted.
class Recording {
 public:
  virtual ~Recording() = default;
  virtual void replay(void* stream) = 0;
};

class Backend {
 public:
  virtual ~Backend() = default;
  virtual EngineTable engines() const = 0;
  // How many runs of one plan may use memory the plan owns at once, each in a part of its own.
  virtual int owned_slots() const = 0;

  // Aligned to kWorkspaceAlignment; throws Error(out_of_memory).
  virtual std::byte* allocate(const DeviceProps& device, std::int64_t bytes) const = 0;
  virtual void release(const DeviceProps& device, std::byte* memory,
                       std::int64_t bytes) const noexcept = 0;
  // After the stream's earlier work, and done on return.
  virtual void upload(const DeviceProps& device, void* to, const void* from, std::int64_t bytes,
                      void* stream) const = 0;
  virtual void download(const DeviceProps& device, void* to, const void* from, std::int64_t bytes,
                        void* stream) const = 0;
  // In the stream's order.
  virtual void fill(const DeviceProps& device, void* to, std::byte value, std::int64_t bytes,
                    void* stream) const = 0;
  virtual void synchronize(const DeviceProps& device, void* stream) const = 0;
  virtual std::unique_ptr<Marker> marker(const DeviceProps& device) const = 0;
  // Of what `work` gives to the stream it is called with: now, or at every replay.
  virtual std::unique_ptr<Recording> recording(const DeviceProps& device,
                                               std::function<void(void* stream)> work) const = 0;
};
const Backend& backend(DeviceKind kind);

// Memory of a device, given back at the end of its life.
class OwnedMemory {
 public:
  OwnedMemory() = default;
  OwnedMemory(const DeviceProps& device, std::int64_t bytes);  // throws Error(out_of_memory)
  ~OwnedMemory();
  OwnedMemory(OwnedMemory&& other) noexcept;
  OwnedMemory& operator=(OwnedMemory&& other) noexcept;

  std::byte* data() const { return data_; }
  std::int64_t bytes() const { return bytes_; }

 private:
  DeviceProps device_;
  std::byte* data_ = nullptr;
  std::int64_t bytes_ = 0;
};

}  // namespace ashlar
