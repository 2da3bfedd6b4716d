// The interface between plans and a kind of device: engines, memory, streams and events. `stream`
// is a CUstream on a GPU; the CPU ignores it and executes synchronously.
#pragma once

#include <ashlar/device.hpp>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "plan/engine.hpp"

namespace ashlar {

// An event: a point in a stream's work.
class Marker {
 public:
  virtual ~Marker() = default;
  virtual void record(void* stream) = 0;
  // Makes work enqueued on `stream` from now on wait for this point; no effect if none was
  // recorded. Never blocks the calling thread.
  virtual void stream_wait(void* stream) = 0;
  // Blocks until both points are reached.
  virtual double seconds_since(const Marker& earlier) const = 0;
};

// Work recorded once and launched as a unit any number of times (a CUDA graph on a GPU).
class Recording {
 public:
  virtual ~Recording() = default;
  virtual void replay(void* stream) = 0;
};

class Backend {
 public:
  virtual ~Backend() = default;
  virtual EngineTable engines() const = 0;
  // Number of slots of owned memory: the maximum number of concurrent runs of one plan that use it.
  virtual int owned_slots() const = 0;

  // Aligned to kWorkspaceAlignment; throws Error(out_of_memory).
  virtual std::byte* allocate(const DeviceProps& device, std::int64_t bytes) const = 0;
  virtual void release(const DeviceProps& device, std::byte* memory,
                       std::int64_t bytes) const noexcept = 0;
  // Ordered after the stream's earlier work and complete on return.
  virtual void upload(const DeviceProps& device, void* to, const void* from, std::int64_t bytes,
                      void* stream) const = 0;
  virtual void download(const DeviceProps& device, void* to, const void* from, std::int64_t bytes,
                        void* stream) const = 0;
  // Stream-ordered, asynchronous, and legal during stream capture. `words` may be reused on return.
  virtual void enqueue_upload(const DeviceProps& device, void* to,
                              std::span<const std::int32_t> words, void* stream) const = 0;
  // Stream-ordered, asynchronous.
  virtual void fill(const DeviceProps& device, void* to, std::byte value, std::int64_t bytes,
                    void* stream) const = 0;
  virtual void synchronize(const DeviceProps& device, void* stream) const = 0;
  virtual std::unique_ptr<Marker> marker(const DeviceProps& device) const = 0;
  // Records what `work` enqueues on the stream it is called with. A backend may instead call `work`
  // at every replay.
  virtual std::unique_ptr<Recording> recording(const DeviceProps& device,
                                               std::function<void(void* stream)> work) const = 0;
};

// A device allocation, released on destruction.
class OwnedMemory {
 public:
  OwnedMemory() = default;
  // Throws Error(out_of_memory).
  OwnedMemory(const Backend& backend, const DeviceProps& device, std::int64_t bytes);
  ~OwnedMemory();
  OwnedMemory(OwnedMemory&& other) noexcept;
  OwnedMemory& operator=(OwnedMemory&& other) noexcept;

  std::byte* data() const { return data_; }
  std::int64_t bytes() const { return bytes_; }

 private:
  const Backend* backend_ = nullptr;
  DeviceProps device_;
  std::byte* data_ = nullptr;
  std::int64_t bytes_ = 0;
};

}  // namespace ashlar
