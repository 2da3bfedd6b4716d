#include "cuda/driver/stream_event.hpp"

#include "cuda/driver/context.hpp"
#include "cuda/driver/private_capture.hpp"

namespace ashlar::cuda {

bool is_capturing(void* stream) {
  int status = 0;
  // The default stream cannot be captured, and querying it while another stream is captured is an
  // error. Its handle is 0 or 1.
  if (reinterpret_cast<std::uintptr_t>(stream) <= 1) return false;
  check(driver_api().is_capturing(static_cast<StreamHandle>(stream), &status),
        "querying the capture state of a stream");
  return status != 0;
}

bool supports_dependent_launch(void* stream) {
  constexpr int kFirstWithProgrammaticEdges = 12030;
  if (!is_capturing(stream)) return true;
  return driver().version >= kFirstWithProgrammaticEdges && !CapturedGraph::has_plain_edges(stream);
}

StreamEvent::StreamEvent(DeviceOrdinal device) : device_(device) {
  const ContextScope scope(device);
  check(driver_api().create_event(&event_, 0), "creating an event");
}

StreamEvent::~StreamEvent() {
  // A failure is ignored: the event is freed with the process.
  driver_api().destroy_event(event_);
}

void StreamEvent::record(void* stream) {
  if (is_capturing(stream)) return;
  const ContextScope scope(device_);
  check(driver_api().record_event(event_, static_cast<StreamHandle>(stream)), "recording an event");
  recorded_ = true;
}

void StreamEvent::stream_wait(void* stream) {
  if (!recorded_ || is_capturing(stream)) return;
  const ContextScope scope(device_);
  check(driver_api().wait_event(static_cast<StreamHandle>(stream), event_, 0),
        "ordering two streams");
}

double StreamEvent::seconds_since(const Marker& earlier) const {
  const auto& other = dynamic_cast<const StreamEvent&>(earlier);
  const ContextScope scope(device_);
  float milliseconds = 0;
  check(driver_api().synchronize_event(event_), "waiting for the GPU");
  check(driver_api().elapsed_milliseconds(&milliseconds, other.event_, event_),
        "querying the time between two events");
  return 1e-3 * static_cast<double>(milliseconds);
}

}  // namespace ashlar::cuda
