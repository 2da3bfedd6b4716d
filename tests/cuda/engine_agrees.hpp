// Checks that an engine agrees with the oracle, on a real or emulated GPU.
#pragma once

#include <gtest/gtest.h>

#include <ashlar/ashlar.hpp>
#include <functional>

#include "api/backends.hpp"
#include "cuda/cuda_device.hpp"
#include "cuda/launch/kernel_design.hpp"
#include "engine_compiles.hpp"
#include "support/problem.hpp"

namespace ashlar::cuda {

inline bool is_emulated_gpu() {
  return detect_gpu(0).description.find("Emulated") != std::string::npos;
}

// Runs the engine in each of its configurations (only the first unless `all_configs`; on the
// emulated GPU at most six, spread over all) for every region of the graph that it supports; there
// must be at least one. `device` may restrict the resources that engines see. `wanted`: only these
// configurations, of which there must be one. `change` may modify the inputs.
inline void expect_agrees(const CudaEngine& engine, const Graph& graph, bool all_configs = false,
                          std::uint64_t seed = 3, support::Fill fill = support::Fill::plain,
                          const DeviceProps& device = Device::named("cuda:0").props(),
                          const std::function<bool(const Config&)>& wanted = {},
                          const support::Problem::Change& change = {}) {
  const auto outline = build_plan(graph, device, {}, nullptr, false);
  std::vector<SavedChoice> choices;
  for (const PlanData::Step& step : outline->steps)
    choices.push_back({std::string(step.choice.engine->id()), step.choice.config.knobs});
  support::Problem problem(graph, seed, fill, change);
  int taken = 0;
  for (std::size_t step = 0; step < outline->steps.size(); ++step) {
    const Region& region = outline->steps[step].region;
    const Support support = engine.supports(region, device);
    if (support.is_other_operation()) continue;
    ASSERT_TRUE(bool(support)) << region.to_text(outline->lowered.graph) << ": "
                               << support.reason();
    ++taken;
    std::vector<Config> configs = engine.configs(region, device);
    if (wanted) std::erase_if(configs, [&](const Config& config) { return !wanted(config); });
    ASSERT_FALSE(configs.empty());
    if (!all_configs) configs.resize(1);
    constexpr std::size_t kMany = 6;
    if (configs.size() > kMany && is_emulated_gpu())
      keep_every((configs.size() + kMany - 1) / kMany, configs);
    for (const Config& config : configs) {
      std::vector<SavedChoice> own = choices;
      own[step] = {std::string(engine.id()), config.knobs};
      const auto plan = build_plan(graph, device, {.guard = true}, &own, true);
      EXPECT_EQ(problem.run(*plan), "")
          << region.to_text(outline->lowered.graph) << " " << config.to_text();
    }
  }
  EXPECT_GT(taken, 0);
}

}  // namespace ashlar::cuda
