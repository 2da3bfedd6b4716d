#include "event.hpp"

#include <atomic>
#include <chrono>
#include <mutex>

#include "error.hpp"
#include "registry.hpp"
#include "stream.hpp"

using namespace ashlar::hostrt;

struct CUevent_st {
  unsigned int flags;
  std::mutex mutex;
  std::weak_ptr<Capture> capture;            // the one it was last recorded in
  std::atomic<int64_t> nanoseconds{kNever};  // when it was recorded

  static constexpr int64_t kNever = -1;
};

namespace {

Registry<CUevent_st>& events() { return Registry<CUevent_st>::instance(); }

// Work runs synchronously, so an existing event is always complete.
cudaError_t happened(cudaEvent_t event) {
  return record_error(is_event(event) ? cudaSuccess : cudaErrorInvalidResourceHandle);
}

}  // namespace

namespace ashlar::hostrt {

bool is_event(cudaEvent_t event) { return events().find(event) != nullptr; }

std::shared_ptr<Capture> capture_of_event(cudaEvent_t event) {
  const auto object = events().find(event);
  if (object == nullptr) {
    return nullptr;
  }
  const std::lock_guard lock(object->mutex);
  const auto capture = object->capture.lock();
  return capture != nullptr && !capture->is_over ? capture : nullptr;
}

void destroy_events() { events().clear(); }

}  // namespace ashlar::hostrt

cudaError_t cudaEventCreate(cudaEvent_t* event) {
  return cudaEventCreateWithFlags(event, cudaEventDefault);
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned int flags) {
  constexpr unsigned int kKnown =
      cudaEventBlockingSync | cudaEventDisableTiming | cudaEventInterprocess;
  const bool shared_with_times =
      (flags & cudaEventInterprocess) != 0 && (flags & cudaEventDisableTiming) == 0;
  if (event == nullptr || (flags & ~kKnown) != 0 || shared_with_times) {
    return record_error(cudaErrorInvalidValue);
  }
  auto created = std::make_shared<CUevent_st>();
  created->flags = flags;
  *event = events().add(std::move(created));
  return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  return record_error(events().remove(event) ? cudaSuccess : cudaErrorInvalidResourceHandle);
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  return cudaEventRecordWithFlags(event, stream, cudaEventRecordDefault);
}

cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned int flags) {
  const auto object = events().find(event);
  if (object == nullptr || check(stream) != cudaSuccess) {
    return record_error(cudaErrorInvalidResourceHandle);
  }
  if ((flags & ~static_cast<unsigned int>(cudaEventRecordExternal)) != 0) {
    return record_error(cudaErrorInvalidValue);
  }
  {
    const std::lock_guard lock(object->mutex);
    object->capture = capture_of(stream);
  }
  if (capture_of(stream) != nullptr) {
    return cudaSuccess;  // a dependency in the graph, not a time stamp
  }
  object->nanoseconds = std::chrono::duration_cast<std::chrono::nanoseconds>(
                            std::chrono::steady_clock::now().time_since_epoch())
                            .count();
  return cudaSuccess;
}

cudaError_t cudaEventQuery(cudaEvent_t event) { return happened(event); }
cudaError_t cudaEventSynchronize(cudaEvent_t event) { return happened(event); }

cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end) {
  if (milliseconds == nullptr) {
    return record_error(cudaErrorInvalidValue);
  }
  const auto first = events().find(start);
  const auto last = events().find(end);
  const auto timed = [](const auto& event) {
    return event != nullptr && (event->flags & cudaEventDisableTiming) == 0 &&
           event->nanoseconds != CUevent_st::kNever;
  };
  if (!timed(first) || !timed(last)) {
    return record_error(cudaErrorInvalidResourceHandle);
  }
  *milliseconds = static_cast<float>(last->nanoseconds - first->nanoseconds) * 1e-6F;
  return cudaSuccess;
}
