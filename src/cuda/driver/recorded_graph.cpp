#include "cuda/driver/recorded_graph.hpp"

#include "cuda/driver/private_capture.hpp"

namespace ashlar::cuda {

RecordedGraph::RecordedGraph(DeviceOrdinal device, const std::function<void(void* stream)>& work)
    : device_(device) {
  const ContextScope scope(device);
  const CapturedGraph captured(work, GraphEdges::programmatic);
  check(driver_api().instantiate_graph(&exec_, captured.handle(), 0), "instantiating a CUDA graph");
}

RecordedGraph::~RecordedGraph() {
  // A failure is ignored: the graph is freed with the process.
  try {
    const ContextScope scope(device_);
    driver_api().destroy_graph_exec(exec_);
  } catch (const Error&) {
  }
}

void RecordedGraph::replay(void* stream) {
  const ContextScope scope(device_);
  check(driver_api().launch_graph(exec_, static_cast<StreamHandle>(stream)),
        "launching a CUDA graph");
}

}  // namespace ashlar::cuda
