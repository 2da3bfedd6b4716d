#include "cuda/driver/private_capture.hpp"

namespace ashlar::cuda {

namespace {

constexpr const char* kWhat = "capturing a CUDA graph";

thread_local StreamHandle plain_stream = nullptr;  // this thread's private stream with plain edges,
                                                   // if any

class PrivateStream {
 public:
  explicit PrivateStream(GraphEdges edges) : before_(plain_stream) {
    constexpr unsigned kNotOrderedByTheDefaultStream = 1;
    check(driver_api().create_stream(&handle_, kNotOrderedByTheDefaultStream), kWhat);
    if (edges == GraphEdges::plain) plain_stream = handle_;
  }
  ~PrivateStream() {
    plain_stream = before_;
    driver_api().destroy_stream(handle_);
  }
  PrivateStream(const PrivateStream&) = delete;
  PrivateStream& operator=(const PrivateStream&) = delete;
  StreamHandle handle() const { return handle_; }

 private:
  StreamHandle handle_ = nullptr, before_;
};

}  // namespace

CapturedGraph::CapturedGraph(const std::function<void(void* stream)>& run, GraphEdges edges) {
  const DriverApi& api = driver_api();
  const PrivateStream stream(edges);
  constexpr int kRelaxed = 2;
  check(api.begin_capture(stream.handle(), kRelaxed), kWhat);
  try {
    run(stream.handle());
  } catch (...) {
    api.end_capture(stream.handle(), &graph_);
    if (graph_ != nullptr) api.destroy_graph(graph_);
    throw;
  }
  check(api.end_capture(stream.handle(), &graph_), kWhat);
}

bool CapturedGraph::has_plain_edges(void* stream) { return plain_stream == stream; }

CapturedGraph::~CapturedGraph() { driver_api().destroy_graph(graph_); }

}  // namespace ashlar::cuda
