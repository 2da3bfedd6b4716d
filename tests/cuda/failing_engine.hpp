// A run of cuda.host that fails in stream order.
#pragma once

#include <ashlar/error.hpp>
#include <ashlar/memory.hpp>
#include <memory>
#include <vector>

#include "cuda/engines/engines.hpp"
#include "plan/kernel.hpp"
#include "plan/partition.hpp"

namespace ashlar::cuda {

class FailingKernel final : public Kernel {
 public:
  void run(const KernelContext&) const override {
    fail(ErrorCode::out_of_memory, "no memory for the weights");
  }
};

class FailingEngine final : public Engine {
 public:
  std::string_view id() const override { return "cpu.failing"; }
  EngineKind kind() const override { return EngineKind::reference; }
  std::string_view description() const override { return "fails in every run"; }
  Support supports(const Region&, const DeviceProps&) const override { return Support::yes(); }
  std::vector<Config> configs(const Region&, const DeviceProps&) const override {
    return {Config{}};
  }
  std::unique_ptr<Kernel> build(const Graph&, const Region&, const Config&,
                                const DeviceProps&) const override {
    return std::make_unique<FailingKernel>();
  }
};

// y = relu(x) of 4 elements on GPU `ordinal`.
class FailingRun {
 public:
  explicit FailingRun(DeviceOrdinal ordinal)
      : device_(Device::named("cuda:" + std::to_string(ordinal))),
        x_(device_, 16),
        y_(device_, 16) {
    graph_.output("y", relu(graph_.input("x", {4}, f32)));
    lowered_ = std::make_unique<LoweredGraph>(lower(graph_, true));
    regions_ = partition(*lowered_, std::vector<FusionLimits>(lowered_->graph.nodes().size()));
    kernel_ = make_host_engine(failing_)->build(lowered_->graph, regions_[0], {}, device_.props());
    locations_.resize(lowered_->graph.tensors().size());
    locations_[static_cast<std::size_t>(regions_[0].reads[0])] = {Location::Kind::bound, 0,
                                                                  nullptr};
    locations_[static_cast<std::size_t>(regions_[0].writes[0])] = {Location::Kind::bound, 1,
                                                                   nullptr};
  }

  void run(void* stream) const {
    void* const pointers[] = {x_.data(), y_.data()};
    kernel_->run(KernelContext(locations_, pointers, nullptr, stream));
  }
  const Memory& y() const { return y_; }

 private:
  Device device_;
  Memory x_, y_;
  Graph graph_{"sample"};
  std::unique_ptr<LoweredGraph> lowered_;
  std::vector<Region> regions_;
  FailingEngine failing_;
  std::unique_ptr<Kernel> kernel_;
  std::vector<Location> locations_;
};

}  // namespace ashlar::cuda
