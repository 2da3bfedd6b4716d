// GPU work captured as one CUDA graph and launched by one call, as inference servers decode.
#pragma once

#include <functional>

namespace ashlar::bench {

class WorkGraph {
 public:
  // Captures what `work` enqueues on its argument, a CUstream. Throws Error if capture fails. The
  // driver must already be loaded into the process.
  explicit WorkGraph(const std::function<void(void* stream)>& work);
  ~WorkGraph();
  WorkGraph(const WorkGraph&) = delete;
  WorkGraph& operator=(const WorkGraph&) = delete;

  void launch() const;  // on the default stream

 private:
  void* executable_ = nullptr;
};

}  // namespace ashlar::bench
