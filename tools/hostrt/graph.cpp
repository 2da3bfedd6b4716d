// Graphs: work captured from streams, replayed in capture order.

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
    return record_error(cudaErrorInvalidValue);
  }
  const std::lock_guard lock(object->mutex);
  *executable = executables().add(std::make_shared<CUgraphExec_st>(CUgraphExec_st{object->nodes}));
  return cudaSuccess;
}

}  // namespace

namespace ashlar::hostrt {

void record_work(const Capture& capture, std::function<void()> work) {
  if (const auto graph = graphs().find(capture.graph)) {
    const std::lock_guard lock(graph->mutex);
    graph->nodes.push_back(std::move(work));
  }
}

}  // namespace ashlar::hostrt

cudaError_t cudaGraphCreate(cudaGraph_t* graph, unsigned int flags) {
  return flags != 0 ? record_error(cudaErrorInvalidValue)
                    : return_value(graph, graphs().add(std::make_shared<CUgraph_st>()));
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  return record_error(graphs().remove(graph) ? cudaSuccess : cudaErrorInvalidValue);
}

// Returns the number of nodes only; the nodes themselves are not exposed.
cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, size_t* count) {
  const auto object = graphs().find(graph);
  if (object == nullptr || count == nullptr) {
    return record_error(cudaErrorInvalidValue);
  }
  if (nodes != nullptr) {
    return unsupported("cudaGraphGetNodes with a list of nodes");
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
  return record_error(executables().remove(executable) ? cudaSuccess : cudaErrorInvalidValue);
}

cudaError_t cudaGraphUpload(cudaGraphExec_t executable, cudaStream_t stream) {
  return record_error(executables().find(executable) == nullptr ? cudaErrorInvalidValue
                                                                : check(stream));
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t stream) {
  const auto object = executables().find(executable);
  if (object == nullptr) {
    return record_error(cudaErrorInvalidValue);
  }
  const cudaError_t error = check(stream);
  return error != cudaSuccess ? record_error(error) : submit(stream, [object] {
    for (const std::function<void()>& node : object->nodes) {
      node();
    }
  });
}

// For our libcudnn: records work of a call on this stream. Returns 1 when the work is recorded with
// `data`, which the graph releases; 0 when the stream is not being captured and the caller runs the
// work itself. With null `work` it only queries.
extern "C" int ashlar_hostrt_capture(cudaStream_t stream, void (*work)(void*), void* data,
                                     void (*release)(void*));
extern "C" int ashlar_hostrt_capture(cudaStream_t stream, void (*work)(void*), void* data,
                                     void (*release)(void*)) {
  const auto capture = capture_of(stream);
  if (capture == nullptr || work == nullptr) {
    return capture != nullptr ? 1 : 0;
  }
  const std::shared_ptr<void> owner(data, release);
  record_work(*capture, [work, owner] { work(owner.get()); });
  return 1;
}
