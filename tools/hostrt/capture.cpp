// Stream capture.

#include <atomic>

#include "error.hpp"
#include "stream.hpp"

using namespace ashlar::hostrt;

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode) {
  static std::atomic<unsigned long long> next_id{1};
  if (mode < cudaStreamCaptureModeGlobal || mode > cudaStreamCaptureModeRelaxed) {
    return record_error(cudaErrorInvalidValue);
  }
  if (check(stream) != cudaSuccess) {
    return record_error(cudaErrorInvalidResourceHandle);
  }
  if (stream == nullptr || stream == cudaStreamLegacy || stream == cudaStreamPerThread) {
    return record_error(cudaErrorStreamCaptureUnsupported);
  }
  if (capture_of(stream) != nullptr) {
    return record_error(cudaErrorIllegalState);
  }
  cudaGraph_t graph = nullptr;
  cudaGraphCreate(&graph, 0);
  join(stream, std::make_shared<Capture>(next_id++, stream, graph));
  return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  if (check(stream) != cudaSuccess) {
    return record_error(cudaErrorInvalidResourceHandle);
  }
  const auto capture = capture_of(stream);
  if (graph == nullptr || capture == nullptr) {
    return record_error(graph == nullptr ? cudaErrorInvalidValue : cudaErrorIllegalState);
  }
  if (capture->origin != stream) {
    return record_error(cudaErrorStreamCaptureUnmatched);
  }
  capture->is_over = true;
  *graph = capture->graph;
  if (capture->is_invalid) {
    cudaGraphDestroy(capture->graph);
    *graph = nullptr;
    return record_error(cudaErrorStreamCaptureInvalidated);
  }
  return cudaSuccess;
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
  if (status == nullptr || check(stream) != cudaSuccess) {
    return record_error(status == nullptr ? cudaErrorInvalidValue : cudaErrorInvalidResourceHandle);
  }
  *status = cudaStreamCaptureStatusNone;
  if (const auto capture = capture_of(stream)) {
    *status =
        capture->is_invalid ? cudaStreamCaptureStatusInvalidated : cudaStreamCaptureStatusActive;
  }
  return cudaSuccess;
}

namespace ashlar::hostrt {

cudaError_t capture_info(cudaStream_t stream, cudaStreamCaptureStatus* status,
                         unsigned long long* id, cudaGraph_t* graph) {
  clear(id, graph);
  const cudaError_t error = cudaStreamIsCapturing(stream, status);
  const auto capture = capture_of(stream);
  if (capture != nullptr && id != nullptr) {
    *id = capture->id;
  }
  if (capture != nullptr && graph != nullptr) {
    *graph = capture->graph;
  }
  return error;
}

}  // namespace ashlar::hostrt
