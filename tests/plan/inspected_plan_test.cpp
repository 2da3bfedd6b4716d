// inspect() agrees with the plan that compile() builds.
#include <algorithm>
#include <ashlar/ashlar.hpp>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <gtest/gtest.h>

#include "api/backends.hpp"
#include "cuda/launch/kernel_design.hpp"

namespace ashlar {
namespace {

std::vector<std::pair<std::string, Graph>> example_graphs() {
  std::vector<std::pair<std::string, Graph>> graphs;
  for (const auto& entry :
       std::filesystem::directory_iterator(ASHLAR_SOURCE_DIR "/examples/graphs")) {
    std::ifstream file(entry.path());
    std::stringstream text;
    text << file.rdbuf();
    graphs.emplace_back(entry.path().stem(), Graph::from_json(text.str()));
  }
  return graphs;
}

TEST(InspectedPlan, MatchesTheCompiledPlan) {
  for (const auto& [name, graph] : example_graphs())
    for (const std::int64_t limit : {std::int64_t{0}, std::int64_t{1} << 40}) {
      CompileOptions options;
      options.workspace_limit = limit;
      const Inspection expected = inspect(graph, Device::cpu(), options);
      const Plan plan = compile(graph, Device::cpu(), options);
      EXPECT_EQ(expected.workspace_bytes, plan.workspace_size()) << name;
      EXPECT_EQ(expected.owned_bytes, plan.owned_bytes()) << name;
      EXPECT_EQ(expected.regions.size(), static_cast<std::size_t>(plan.region_count())) << name;
      EXPECT_EQ(expected.notes.winograd, plan.notes().winograd) << name;
      EXPECT_GT(expected.seconds(), 0.0) << name;
    }
}

TEST(InspectedPlan, NamesEnginesAndCandidates) {
  for (const auto& [name, graph] : example_graphs())
    for (const Device& device : {Device::cpu(), Device::named("h200")}) {
      const Inspection plan = inspect(graph, device, {}, {.candidates = true});
      ASSERT_NE(plan.heaviest(), nullptr) << name;
      for (const RegionInspection& region : plan.regions) {
        EXPECT_LE(region.seconds, plan.heaviest()->seconds) << name;
        EXPECT_TRUE(std::ranges::any_of(region.attempts, &EngineAttempt::is_chosen)) << name;
        for (const EngineAttempt& attempt : region.attempts)
          EXPECT_TRUE(attempt.is_supported || !attempt.is_chosen) << name;
        ASSERT_FALSE(region.candidates.empty()) << name;
        EXPECT_EQ(region.candidates[0].engine, region.engine) << name;
        EXPECT_EQ(region.candidates[0].config_text(), region.config) << name;
      }
      EXPECT_TRUE(inspect(graph, device).regions[0].candidates.empty()) << "only if asked for";
    }
}

TEST(InspectedPlan, ReportsScratchMemoryOfGpuKernels) {
  const DeviceProps h200 = Device::named("h200").props();
  int kernels = 0;
  for (const auto& [name, graph] : example_graphs())
    for (const bool fuse : {true, false}) {
      CompileOptions options;
      options.fuse = fuse;
      const auto plan = build_plan(graph, h200, options, nullptr, false);
      for (const PlanData::Step& step : plan->steps) {
        const auto* engine = dynamic_cast<const cuda::CudaEngine*>(step.choice.engine);
        if (engine == nullptr) continue;
        ++kernels;
        EXPECT_EQ(engine->design(plan->lowered.graph, step.region, step.choice.config, h200)
                      .scratch.total_bytes(),
                  step.choice.config.scratch_bytes)
            << name << ": " << engine->id();
      }
    }
  EXPECT_GT(kernels, 20);
}

TEST(InspectedPlan, SharedMemoryIsZeroOnCpu) {
  Graph graph;
  graph.output("y", graph
                        .norm(graph.input("x", {4096, 8192}, bf16), NormForward{},
                              {.scale = graph.input("scale", {1, 8192}, bf16)})
                        .y);
  const InspectDetail detail{.shared_memory = true};
  EXPECT_EQ(inspect(graph, Device::cpu(), {}, detail).shared_bytes(), 0);
  const Device h200 = Device::named("h200");
  EXPECT_GT(inspect(graph, h200, {}, detail).shared_bytes(), 0);
  EXPECT_EQ(inspect(graph, h200).shared_bytes(), 0) << "only if asked for";
}

}  // namespace
}  // namespace ashlar
