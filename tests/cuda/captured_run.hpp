// RAII helpers for tests: a stream, and a CUDA graph captured from it.
#pragma once

#include "cuda/driver/context.hpp"
#include "cuda/driver/driver_api.hpp"

namespace ashlar::cuda {

class Stream {
 public:
  Stream() : scope_(0) { check(driver_api().create_stream(&handle_, 1), "stream"); }
  ~Stream() { driver_api().destroy_stream(handle_); }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  StreamHandle handle() const { return handle_; }
  void wait() const { check(driver_api().synchronize_stream(handle_), "wait"); }

 private:
  ContextScope scope_;
  StreamHandle handle_ = nullptr;
};

// An instantiated graph.
class Executable {
 public:
  explicit Executable(GraphHandle graph) { instantiate(graph); }
  // Captures what `run` enqueues into the stream.
  template <class Run>
  Executable(const Stream& stream, const Run& run) {
    const DriverApi& api = driver_api();
    constexpr int kGlobal = 0;  // the strictest mode: no thread may allocate during capture
    check(api.begin_capture(stream.handle(), kGlobal), "begin");
    run();
    GraphHandle graph = nullptr;
    check(api.end_capture(stream.handle(), &graph), "end");
    instantiate(graph);
    api.destroy_graph(graph);
  }
  ~Executable() { driver_api().destroy_graph_exec(exec_); }
  Executable(const Executable&) = delete;
  Executable& operator=(const Executable&) = delete;
  void launch(const Stream& stream) const {
    check(driver_api().launch_graph(exec_, stream.handle()), "launch");
    stream.wait();
  }

 private:
  void instantiate(GraphHandle graph) {
    check(driver_api().instantiate_graph(&exec_, graph, 0), "instantiate");
  }
  GraphExecHandle exec_ = nullptr;
};

}  // namespace ashlar::cuda
