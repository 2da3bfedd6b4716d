// Streams: names for an order that is kept anyway, and what is captured from them.
#pragma once

#include <atomic>
#include <functional>
#include <memory>

#include "cuda_runtime_api.h"

struct CUgraph_st;

namespace ashlar::hostrt {

// Work that is being written down instead of done, from its first stream and those that joined it.
struct Capture {
  Capture(unsigned long long id_, cudaStream_t origin_, CUgraph_st* graph_)
      : id(id_), origin(origin_), graph(graph_) {}

  const unsigned long long id;
  const cudaStream_t origin;
  CUgraph_st* const graph;
  std::atomic<bool> is_over = false;
  std::atomic<bool> is_invalid = false;  // after a call that may not be made meanwhile
};

// cudaSuccess for a stream that exists.
cudaError_t check(cudaStream_t stream);

// What the stream's work is captured by; null for most.
std::shared_ptr<Capture> capture_of(cudaStream_t stream);
void join(cudaStream_t stream, std::shared_ptr<Capture> capture);
void record_work(const Capture& capture, std::function<void()> work);

// Does the work of a stream that was checked, or writes it down.
template <typename Work>
cudaError_t submit(cudaStream_t stream, Work&& work) {
  if (const auto capture = capture_of(stream)) {
    record_work(*capture, std::forward<Work>(work));
  } else {
    work();
  }
  return cudaSuccess;
}

// What cudaStreamGetCaptureInfo tells, in all its versions, but for the last work's node.
cudaError_t capture_info(cudaStream_t stream, cudaStreamCaptureStatus* status,
                         unsigned long long* id, cudaGraph_t* graph);

void destroy_streams();
void destroy_events();

}  // namespace ashlar::hostrt
