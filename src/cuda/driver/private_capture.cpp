#include "cuda/driver/private_capture.hpp"

namespace ashlar::cuda {

namespace {

constexpr const char* kWhat = "capturing a CUDA graph";

class PrivateStream {
 public:
  PrivateStream() {
    constexpr unsigned kNotOrderedByTheDefaultStream = 1;
    check(driver_api().create_stream(&handle_, kNotOrderedByTheDefaultStream), kWhat);
  }
  ~PrivateStream() { driver_api().destroy_stream(handle_); }
  PrivateStream(const PrivateStream&) = delete;
  PrivateStream& operator=(const PrivateStream&) = delete;
  StreamHandle handle() const { return handle_; }

 private:
  StreamHandle handle_ = nullptr;
};

thread_local StreamHandle captured_stream = nullptr;

}  // namespace

CapturedGraph::CapturedGraph(const std::function<void(void* stream)>& run) {
  const DriverApi& api = driver_api();
  const PrivateStream stream;
  captured_stream = stream.handle();
  constexpr int kRelaxed = 2;
  check(api.begin_capture(stream.handle(), kRelaxed), kWhat);
  try {
    run(stream.handle());
    captured_stream = nullptr;
  } catch (...) {
    captured_stream = nullptr;
    api.end_capture(stream.handle(), &graph_);
    if (graph_ != nullptr) api.destroy_graph(graph_);
    throw;
  }
  check(api.end_capture(stream.handle(), &graph_), kWhat);
}

bool CapturedGraph::is_private(void* stream) { return captured_stream == stream; }

CapturedGraph::~CapturedGraph() { driver_api().destroy_graph(graph_); }

}  // namespace ashlar::cuda
