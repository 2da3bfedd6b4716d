#include "work_graph.hpp"

#include <fmt/format.h>

#include <ashlar/error.hpp>

#include "driver_function.hpp"

namespace ashlar::bench {

namespace {

struct GraphFunctions {
  int (*create_stream)(void** stream, unsigned flags) = nullptr;
  int (*destroy_stream)(void* stream) = nullptr;
  int (*begin_capture)(void* stream, int mode) = nullptr;
  int (*end_capture)(void* stream, void** graph) = nullptr;
  int (*instantiate)(void** executable, void* graph, unsigned long long flags) = nullptr;
  int (*destroy_graph)(void* graph) = nullptr;
  int (*launch)(void* executable, void* stream) = nullptr;
  int (*destroy)(void* executable) = nullptr;

  GraphFunctions() {
    const auto find = [](const char* name, auto& function) {
      find_driver_function(name, function);
      if (!function)
        throw Error(ErrorCode::device, fmt::format("bench: the driver lacks {}", name));
    };
    find("cuStreamCreate", create_stream);
    find("cuStreamDestroy_v2", destroy_stream);
    find("cuStreamBeginCapture_v2", begin_capture);
    find("cuStreamEndCapture", end_capture);
    find("cuGraphInstantiateWithFlags", instantiate);
    find("cuGraphDestroy", destroy_graph);
    find("cuGraphLaunch", launch);
    find("cuGraphExecDestroy", destroy);
  }
};
const GraphFunctions& functions() {
  static const GraphFunctions all;
  return all;
}
void check(int status, const char* what) {
  if (status != 0)
    throw Error(ErrorCode::device,
                fmt::format("bench: {} of a CUDA graph: error {}", what, status));
}

// A stream under capture for the lifetime of the object.
class Capture {
 public:
  Capture() {
    constexpr unsigned kNonBlocking = 1;
    constexpr int kThreadLocal = 1;
    check(functions().create_stream(&stream_, kNonBlocking), "stream");
    check(functions().begin_capture(stream_, kThreadLocal), "begin");
  }
  ~Capture() {
    if (!ended_) end();
    functions().destroy_graph(graph_);
    functions().destroy_stream(stream_);
  }
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;
  void* stream() const { return stream_; }
  void* graph() {
    check(end(), "end");
    return graph_;
  }

 private:
  int end() {
    ended_ = true;
    return functions().end_capture(stream_, &graph_);
  }
  void *stream_ = nullptr, *graph_ = nullptr;
  bool ended_ = false;
};

}  // namespace

WorkGraph::WorkGraph(const std::function<void(void* stream)>& work) {
  Capture capture;
  work(capture.stream());
  check(functions().instantiate(&executable_, capture.graph(), 0), "executable");
}
WorkGraph::~WorkGraph() { functions().destroy(executable_); }
void WorkGraph::launch() const { check(functions().launch(executable_, nullptr), "launch"); }

}  // namespace ashlar::bench
