// Streams. All work runs synchronously in program order; a stream is a handle and a capture state.
#pragma once

#include <atomic>
#include <functional>
#include <memory>

#include "cuda_runtime_api.h"

struct CUgraph_st;

namespace ashlar::hostrt {

// A capture in progress: work of its origin stream, and of streams that joined it, is recorded
// instead of executed.
struct Capture {
  Capture(unsigned long long id_, cudaStream_t origin_, CUgraph_st* graph_)
      : id(id_), origin(origin_), graph(graph_) {}

  const unsigned long long id;
  const cudaStream_t origin;
  CUgraph_st* const graph;
  std::atomic<bool> is_over = false;
  std::atomic<bool> is_invalid = false;  // after a call that is illegal during capture
};

// cudaSuccess for a live stream.
cudaError_t check(cudaStream_t stream);

// The active capture of the stream; null if there is none.
std::shared_ptr<Capture> capture_of(cudaStream_t stream);
void join(cudaStream_t stream, std::shared_ptr<Capture> capture);
void record_work(const Capture& capture, std::function<void()> work);

// Runs the work, or records it if the stream is being captured. The stream must be valid.
template <typename Work>
cudaError_t submit(cudaStream_t stream, Work&& work) {
  if (const auto capture = capture_of(stream)) {
    record_work(*capture, std::forward<Work>(work));
  } else {
    work();
  }
  return cudaSuccess;
}

// The common part of all versions of cudaStreamGetCaptureInfo, without dependencies.
cudaError_t capture_info(cudaStream_t stream, cudaStreamCaptureStatus* status,
                         unsigned long long* id, cudaGraph_t* graph);

void destroy_streams();
void destroy_events();

}  // namespace ashlar::hostrt
