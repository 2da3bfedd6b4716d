// An instantiated CUDA graph that can be replayed.
#pragma once

#include <functional>

#include "cuda/driver/context.hpp"
#include "plan/backend.hpp"

namespace ashlar::cuda {

class RecordedGraph final : public Recording {
 public:
  // Throws Error where `work` cannot be captured.
  RecordedGraph(DeviceOrdinal device, const std::function<void(void* stream)>& work);
  ~RecordedGraph() override;
  RecordedGraph(const RecordedGraph&) = delete;
  RecordedGraph& operator=(const RecordedGraph&) = delete;
  void replay(void* stream) override;

 private:
  DeviceOrdinal device_;
  GraphExecHandle exec_ = nullptr;
};

}  // namespace ashlar::cuda
