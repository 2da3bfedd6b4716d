// Streams and events of the emulated driver. Operations execute immediately unless the stream is
// being captured.
#include <atomic>
#include <mutex>
#include <set>

#include "objects.hpp"

namespace emulated {

namespace {

std::mutex mutex;
std::set<StreamHandle> streams, captured;

bool is_capturing(StreamHandle stream) { return stream != nullptr && stream->capture != nullptr; }
bool is_stream(StreamHandle stream) {
  const std::lock_guard lock(mutex);
  // Handles 0, 1 and 2 are the default streams.
  return reinterpret_cast<std::uintptr_t>(stream) <= 2 || streams.count(stream) != 0;
}
StreamHandle own(StreamHandle stream) {
  return reinterpret_cast<std::uintptr_t>(stream) <= 2 ? nullptr : stream;
}

}  // namespace

Result submit(StreamHandle stream, GraphNodeObject operation) {
  if (current_context() == nullptr) return kInvalidContext;
  if (!is_stream(stream)) return kInvalidHandle;
  stream = own(stream);
  if (!is_capturing(stream)) return perform(operation);
  if (stream->is_broken) return kCaptureInvalidated;
  auto& nodes = stream->capture->nodes;
  operation.graph = stream->capture;
  if (!nodes.empty()) operation.after = {nodes.back().get()};
  nodes.push_back(std::make_unique<GraphNodeObject>(std::move(operation)));
  return Result::success;
}

bool refuse_while_capturing() {
  const std::lock_guard lock(mutex);
  for (StreamHandle stream : captured) stream->is_broken = true;
  return !captured.empty();
}

}  // namespace emulated

using namespace emulated;

extern "C" {

Result cuStreamCreate(StreamHandle* stream, unsigned) {
  if (current_context() == nullptr) return kInvalidContext;
  *stream = new StreamObject{current_context(), nullptr, false};
  const std::lock_guard lock(mutex);
  streams.insert(*stream);
  return Result::success;
}
Result cuStreamDestroy_v2(StreamHandle stream) {
  const std::lock_guard lock(mutex);
  if (streams.erase(stream) == 0) return kInvalidHandle;
  captured.erase(stream);
  delete stream->capture;
  delete stream;
  return Result::success;
}
Result cuStreamSynchronize(StreamHandle stream) {
  if (!is_stream(stream)) return kInvalidHandle;
  if (!is_capturing(own(stream))) return Result::success;
  stream->is_broken = true;
  return Result::stream_capture_unsupported;
}
Result cuStreamQuery(StreamHandle stream) { return cuStreamSynchronize(stream); }
Result cuStreamGetCtx(StreamHandle stream, ContextHandle* context) {
  if (!is_stream(stream)) return kInvalidHandle;
  *context = own(stream) != nullptr ? stream->context : current_context();
  return *context != nullptr ? Result::success : kInvalidContext;
}
Result cuStreamWaitEvent(StreamHandle stream, EventHandle, unsigned) {
  return is_stream(stream) ? Result::success : kInvalidHandle;
}
Result cuLaunchHostFunc(StreamHandle stream, void (*function)(void*), void* data) {
  return submit(stream, {.type = GraphNodeType::host_call, .host = {function, data}});
}

// --- capture

Result cuStreamBeginCapture_v2(StreamHandle stream, int) {
  if (!is_stream(stream)) return kInvalidHandle;
  if (own(stream) == nullptr) return Result::stream_capture_unsupported;
  if (is_capturing(stream)) return Result::invalid_value;
  stream->capture = new GraphObject{};
  stream->is_broken = false;
  const std::lock_guard lock(mutex);
  captured.insert(stream);
  return Result::success;
}
Result cuStreamEndCapture(StreamHandle stream, GraphHandle* graph) {
  if (!is_stream(stream) || !is_capturing(own(stream))) return Result::invalid_value;
  {
    const std::lock_guard lock(mutex);
    captured.erase(stream);
  }
  *graph = stream->capture;
  stream->capture = nullptr;
  if (!stream->is_broken) return Result::success;
  delete *graph;
  *graph = nullptr;
  return kCaptureInvalidated;
}
Result cuStreamIsCapturing(StreamHandle stream, int* status) {
  if (!is_stream(stream)) return kInvalidHandle;
  *status = !is_capturing(own(stream)) ? 0 : stream->is_broken ? 2 : 1;
  return Result::success;
}

// --- events

Result cuEventCreate(EventHandle* event, unsigned) {
  if (current_context() == nullptr) return kInvalidContext;
  *event = new EventObject{{}, false};
  return Result::success;
}
Result cuEventDestroy_v2(EventHandle event) {
  delete event;
  return Result::success;
}
Result cuEventRecord(EventHandle event, StreamHandle stream) {
  const auto record = [=] {
    event->time = std::chrono::steady_clock::now();
    event->is_recorded = true;
    return Result::success;
  };
  return submit(stream, {.type = kOtherNode, .other = record});
}
Result cuEventSynchronize(EventHandle) { return Result::success; }
Result cuEventQuery(EventHandle) { return Result::success; }
Result cuEventElapsedTime(float* milliseconds, EventHandle first, EventHandle second) {
  if (!first->is_recorded || !second->is_recorded) return kInvalidHandle;
  *milliseconds = std::chrono::duration<float, std::milli>(second->time - first->time).count();
  return Result::success;
}

}  // extern "C"

EMULATES(cuStreamCreate, create_stream);
EMULATES(cuStreamDestroy_v2, destroy_stream);
EMULATES(cuStreamSynchronize, synchronize_stream);
EMULATES(cuStreamGetCtx, stream_context);
EMULATES(cuStreamWaitEvent, wait_event);
EMULATES(cuLaunchHostFunc, call_host);
EMULATES(cuStreamIsCapturing, is_capturing);
EMULATES(cuStreamBeginCapture_v2, begin_capture);
EMULATES(cuStreamEndCapture, end_capture);
EMULATES(cuEventCreate, create_event);
EMULATES(cuEventDestroy_v2, destroy_event);
EMULATES(cuEventRecord, record_event);
EMULATES(cuEventSynchronize, synchronize_event);
EMULATES(cuEventElapsedTime, elapsed_milliseconds);
