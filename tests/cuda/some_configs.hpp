// An engine restricted to some of its configurations.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <vector>

#include "cuda/launch/kernel_design.hpp"

namespace ashlar::cuda {

// Whether a launch repacks operands first (conv_sm80).
inline bool is_packed(const Config& config) {
  return std::any_of(config.knobs.begin(), config.knobs.end(),
                     [](const auto& knob) { return knob.first == "packed"; });
}

class SomeConfigs final : public CudaEngine {
 public:
  using Wanted = std::function<bool(const Config& config)>;
  SomeConfigs(const CudaEngine& engine, Wanted is_wanted)
      : engine_(engine), is_wanted_(std::move(is_wanted)) {}
  std::string_view id() const override { return engine_.id(); }
  std::string_view description() const override { return engine_.description(); }
  Support supports(const Region& region, const DeviceProps& device) const override {
    return engine_.supports(region, device);
  }
  std::vector<Config> configs(const Region& region, const DeviceProps& device) const override {
    std::vector<Config> all = engine_.configs(region, device);
    std::erase_if(all, [&](const Config& config) { return !is_wanted_(config); });
    EXPECT_FALSE(all.empty()) << "no configuration is wanted";
    return all;
  }
  KernelDesign design(const Graph& graph, const Region& region, const Config& config,
                      const DeviceProps& device) const override {
    return engine_.design(graph, region, config, device);
  }

 private:
  const CudaEngine& engine_;
  Wanted is_wanted_;
};

}  // namespace ashlar::cuda
