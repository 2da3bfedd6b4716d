// Checks that the kernels of an engine compile for the regions of a graph, without a GPU.
#pragma once

#include <gtest/gtest.h>

#include <ashlar/ashlar.hpp>
#include <cstdlib>
#include <iostream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "cuda/jit/nvrtc.hpp"
#include "cuda/known_gpus.hpp"
#include "cuda/launch/kernel_design.hpp"
#include "plan/partition.hpp"

namespace ashlar::cuda {

inline constexpr const char* kHopper = "sm_90a";

inline bool is_long() { return std::getenv("ASHLAR_TEST_LONG") != nullptr; }

// Every n-th configuration, beginning with the first, unless ASHLAR_TEST_LONG is set.
inline void keep_every(std::size_t step, std::vector<Config>& configs) {
  if (is_long()) return;
  std::size_t kept = 0;
  for (std::size_t i = 0; i < configs.size(); i += step) configs[kept++] = configs[i];
  configs.resize(kept);
}

// The GPU of an architecture: designs depend on its shared memory.
inline DeviceProps known_gpu(std::string_view architecture) {
  for (const DeviceProps& gpu : known_gpus())
    if (architecture_of(gpu.compute_capability) == architecture) return gpu;
  throw std::invalid_argument("no known GPU is " + std::string(architecture));
}

// Compiles these configurations of a region with at most `max_local_bytes` of local memory per
// thread, spilled or not.
inline void expect_compiles(const CudaEngine& engine, const Graph& lowered, const Region& region,
                            const std::vector<Config>& configs, const DeviceProps& gpu,
                            int max_local_bytes = 0) {
  static KernelImages images{FileCache("")};
  for (const Config& config : configs) {
    const std::string what = gpu.name + ": " + region.to_text(lowered) + " " + config.to_text();
    const KernelDesign design = engine.design(lowered, region, config, gpu);
    std::int64_t scratch = 0;
    for (const auto& reservation : design.scratch.reservations()) scratch += reservation.bytes;
    EXPECT_EQ(scratch, config.scratch_bytes) << what;
    for (const LaunchDesign& launch : design.launches) {
      const auto image = images.get(launch.source, architecture_of(gpu.compute_capability));
      const Resources used = resources_of(image->log);
      EXPECT_LE(used.spilled_bytes, max_local_bytes) << what << "\n" << image->log;
      EXPECT_LE(used.local_bytes, max_local_bytes) << what << "\n" << image->log;
      // ptxas serialises wgmma where it cannot track their registers.
      EXPECT_EQ(image->log.find("are serialized"), std::string::npos) << what << "\n" << image->log;
    }
  }
}

// Compiles for a GPU of each architecture: every configuration where `all_configs`, else the first;
// every `step`-th without ASHLAR_TEST_LONG. Skips regions of other operations, but the engine must
// support at least one.
inline void expect_compiles(const CudaEngine& engine, const Graph& graph,
                            const std::vector<const char*>& architectures, bool all_configs = false,
                            int max_local_bytes = 0, std::size_t step = 1) {
  const LoweredGraph lowered = lower(graph, true);
  const std::vector<FusionLimits> limits(lowered.graph.nodes().size());
  const std::vector<Region> regions = partition(lowered, limits);
  for (const char* architecture : architectures) {
    const DeviceProps gpu = known_gpu(architecture);
    int taken = 0;
    for (const Region& region : regions) {
      const Support support = engine.supports(region, gpu);
      if (support.is_other_operation()) continue;
      ASSERT_TRUE(bool(support)) << gpu.name << ": " << region.to_text(lowered.graph) << ": "
                                 << support.reason();
      ++taken;
      std::vector<Config> configs = engine.configs(region, gpu);
      ASSERT_FALSE(configs.empty());
      if (!all_configs) configs.resize(1);
      keep_every(step, configs);
      expect_compiles(engine, lowered.graph, region, configs, gpu, max_local_bytes);
    }
    EXPECT_GT(taken, 0);
  }
}

}  // namespace ashlar::cuda
