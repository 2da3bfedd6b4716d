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

}  // namespace

CapturedGraph::CapturedGraph(const std::function<void(void* stream)>& run) {
  const DriverApi& api = driver_api();
  const PrivateStream stream;
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

CapturedGraph::~CapturedGraph() { driver_api().destroy_graph(graph_); }

}  // namespace ashlar::cuda
