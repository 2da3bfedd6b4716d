// A point in a stream's work.
#pragma once

#include "cuda/driver/driver_api.hpp"
#include "plan/backend.hpp"

namespace ashlar::cuda {

class StreamEvent final : public Marker {
 public:
  explicit StreamEvent(DeviceOrdinal device);
  ~StreamEvent() override;
  StreamEvent(const StreamEvent&) = delete;
  StreamEvent& operator=(const StreamEvent&) = delete;

  // Both do nothing while the stream is being captured: an event inside a graph cannot order work
  // outside it.
  void record(void* stream) override;
  void stream_wait(void* stream) override;
  double seconds_since(const Marker& earlier) const override;

 private:
  DeviceOrdinal device_;
  EventHandle event_ = nullptr;
  bool recorded_ = false;
};

bool is_capturing(void* stream);
// Whether a launch may begin before the one before it in this stream is done: in a graph, drivers
// from CUDA 12.3 on can tell so. Not in one whose nodes are taken out of it again.
bool supports_dependent_launch(void* stream);

}  // namespace ashlar::cuda
