// outline() agrees with the plan that compile() builds.
#include <ashlar/ashlar.hpp>
#include <ashlar/outline.hpp>
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

TEST(Outline, MatchesTheCompiledPlan) {
  for (const auto& [name, graph] : example_graphs())
    for (const std::int64_t limit : {std::int64_t{0}, std::int64_t{1} << 40}) {
      CompileOptions options;
      options.workspace_limit = limit;
      const Outline expected = outline(graph, Device::cpu(), options);
      const Plan plan = compile(graph, Device::cpu(), options);
      EXPECT_EQ(expected.workspace_size, plan.workspace_size()) << name;
      EXPECT_EQ(expected.owned_bytes, plan.owned_bytes()) << name;
      EXPECT_EQ(expected.engines.size(), static_cast<std::size_t>(plan.region_count())) << name;
      EXPECT_EQ(expected.notes.winograd, plan.notes().winograd) << name;
      EXPECT_GT(expected.seconds, 0.0) << name;
    }
}

TEST(Outline, ReportsScratchMemoryOfGpuKernels) {
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

TEST(Outline, SharedMemoryIsZeroOnCpu) {
  Graph graph;
  graph.output("y", graph
                        .norm(graph.input("x", {4096, 8192}, bf16),
                              graph.input("scale", {1, 8192}, bf16), {}, NormForward{})
                        .y);
  EXPECT_EQ(shared_memory(graph, Device::cpu()), 0);
  EXPECT_GT(shared_memory(graph, Device::named("h200")), 0);
}

}  // namespace
}  // namespace ashlar
