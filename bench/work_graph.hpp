// Work on a GPU as one CUDA graph, which the host gives to it at once: models decode like that.
#pragma once

#include <functional>

namespace ashlar::bench {

class WorkGraph {
 public:
  // Of what `work` gives to the stream it is called with, a CUstream. Throws Error where the driver
  // refuses; a driver must be in the process already.
  explicit WorkGraph(const std::function<void(void* stream)>& work);
  ~WorkGraph();
  WorkGraph(const WorkGraph&) = delete;
  WorkGraph& operator=(const WorkGraph&) = delete;

  void launch() const;  // on the default stream

 private:
  void* executable_ = nullptr;
};

}  // namespace ashlar::bench
