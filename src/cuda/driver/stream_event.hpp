// A CUDA event as a marker in a stream.
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

  // Both do nothing during capture: an event inside a graph cannot order work outside it.
  void record(void* stream) override;
  void stream_wait(void* stream) override;
  double seconds_since(const Marker& earlier) const override;

 private:
  DeviceOrdinal device_;
  EventHandle event_ = nullptr;
  bool recorded_ = false;
};

bool is_capturing(void* stream);
// Whether launches into this stream may use PDL. In a capture the driver must support programmatic
// edges (CUDA 12.3 on), and the graph must not have plain edges only.
bool supports_dependent_launch(void* stream);

}  // namespace ashlar::cuda
