// Graphs: work that was captured from streams, done again in its order.

#include <mutex>
#include <vector>

#include "error.hpp"
#include "registry.hpp"
#include "stream.hpp"

using namespace ashlar::hostrt;

struct CUgraph_st {
  std::mutex mutex;
  std::vector<std::function<void()>> nodes;
};

struct CUgraphExec_st {
  std::vector<std::function<void()>> nodes;
};

namespace {

Registry<CUgraph_st>& graphs() { return Registry<CUgraph_st>::instance(); }
Registry<CUgraphExec_st>& executables() { return Registry<CUgraphExec_st>::instance(); }

cudaError_t instantiate(cudaGraphExec_t* executable, cudaGraph_t graph) {
  const auto object = graphs().find(graph);
  if (executable == nullptr || object == nullptr) {
    return answer(cudaErrorInvalidValue);
  }
  const std::lock_guard lock(object->mutex);
  *executable = executables().add(std::make_shared<CUgraphExec_st>(CUgraphExec_st{object->nodes}));
  return cudaSuccess;
}

}  // namespace

namespace ashlar::hostrt {

void write_down(const Capture& capture, std::function<void()> work) {
  if (const auto graph = graphs().find(capture.graph)) {
    const std::lock_guard lock(graph->mutex);
    graph->nodes.push_back(std::move(work));
  }
}

}  // namespace ashlar::hostrt

cudaError_t cudaGraphCreate(cudaGraph_t* graph, unsigned int flags) {
  return flags != 0 ? answer(cudaErrorInvalidValue)
                    : give(graph, graphs().add(std::make_shared<CUgraph_st>()));
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  return answer(graphs().remove(graph) ? cudaSuccess : cudaErrorInvalidValue);
}

// How many nodes there are; they are not handed out.
cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, size_t* count) {
  const auto object = graphs().find(graph);
  if (object == nullptr || count == nullptr) {
    return answer(cudaErrorInvalidValue);
  }
  if (nodes != nullptr) {
    return refuse("cudaGraphGetNodes with a list of nodes");
  }
  const std::lock_guard lock(object->mutex);
  *count = object->nodes.size();
  return cudaSuccess;
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph,
                                 unsigned long long) {
  return instantiate(executable, graph);
}

cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t* executable, cudaGraph_t graph,
                                          unsigned long long) {
  return instantiate(executable, graph);
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable) {
  return answer(executables().remove(executable) ? cudaSuccess : cudaErrorInvalidValue);
}

cudaError_t cudaGraphUpload(cudaGraphExec_t executable, cudaStream_t stream) {
  return answer(executables().find(executable) == nullptr ? cudaErrorInvalidValue : check(stream));
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t stream) {
  const auto object = executables().find(executable);
  if (object == nullptr) {
    return answer(cudaErrorInvalidValue);
  }
  const cudaError_t error = check(stream);
  return error != cudaSuccess ? answer(error) : submit(stream, [object] {
    for (const std::function<void()>& node : object->nodes) {
      node();
    }
  });
}

// For our libcudnn: work of a call on this stream. 1: it is written down, with `data`, which is
// released in the end; 0: the stream is not captured, and the caller does its work itself. Without
// work, the question alone.
extern "C" int ashlar_hostrt_capture(cudaStream_t stream, void (*work)(void*), void* data,
                                     void (*release)(void*));
extern "C" int ashlar_hostrt_capture(cudaStream_t stream, void (*work)(void*), void* data,
                                     void (*release)(void*)) {
  const auto capture = capture_of(stream);
  if (capture == nullptr || work == nullptr) {
    return capture != nullptr ? 1 : 0;
  }
  const std::shared_ptr<void> held(data, release);
  write_down(*capture, [work, held] { work(held.get()); });
  return 1;
}
