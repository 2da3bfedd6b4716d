// Printed pointwise programs: every mode, dtype and kind of view compiles; common types without
// spills.
#include <gtest/gtest.h>

#include <algorithm>
#include <ashlar/ashlar.hpp>
#include <cstdlib>

#include "cuda/engine_table.hpp"
#include "cuda/jit/nvrtc.hpp"
#include "cuda/launch/kernel_design.hpp"
#include "engine_compiles.hpp"
#include "graph/pointwise_traits.hpp"
#include "plan/partition.hpp"

namespace ashlar::cuda {
namespace {

class PointwiseText : public testing::Test {
 protected:
  void SetUp() override {
    if (!nvrtc().is_open) GTEST_SKIP() << nvrtc().reason;
  }

  // Compiles every region of the graph for each architecture.
  void expect_compiles(const Graph& graph, const std::vector<const char*>& architectures,
                       int max_spilled_bytes = 0) {
    const LoweredGraph lowered = lower(graph, true);
    const std::vector<FusionLimits> limits(lowered.graph.nodes().size());
    for (const char* architecture : architectures) {
      const DeviceProps gpu = known_gpu(architecture);
      for (const Region& region : partition(lowered, limits)) {
        const EngineTable table = engine_table();
        const auto found = std::find_if(table.begin(), table.end(), [&](const Engine* engine) {
          return bool(engine->supports(region, gpu));
        });
        ASSERT_NE(found, table.end()) << region.to_text(lowered.graph);
        const auto& engine = dynamic_cast<const CudaEngine&>(**found);
        const Config config = engine.configs(region, gpu)[0];
        const KernelDesign design = engine.design(lowered.graph, region, config, gpu);
        for (const LaunchDesign& launch : design.launches) {
          const auto image = images_.get(launch.source, architecture);
          EXPECT_LE(resources_of(image->log).spilled_bytes, max_spilled_bytes) << image->log;
        }
      }
    }
  }
  KernelImages images_{FileCache("")};
};

TEST_F(PointwiseText, EveryMode) {
  std::vector<DType> types = {f32, i32};
  if (is_long()) types.push_back(f64);
  for (const DType compute : types) {
    Graph graph;
    const Value x = graph.input("x", {64, 96}, compute), b = graph.input("b", {64, 96}, compute);
    const Value predicate = graph.input("predicate", {64, 96}, boolean);
    for (int m = 0; m < kPointwiseModeCount; ++m) {
      const auto mode = static_cast<PointwiseMode>(m);
      const bool is_function =
          mode == PointwiseMode::pow || mode == PointwiseMode::atan2 ||
          (mode >= PointwiseMode::sqrt && mode <= PointwiseMode::erf) ||
          (mode >= PointwiseMode::tanh_fwd && mode <= PointwiseMode::gelu_approx_tanh_bwd);
      if (compute == i32 && is_function) continue;
      if (is_bitwise(mode) && compute != i32) continue;
      std::vector<Value> operands = {x};
      if (operand_count(mode) > 1) operands.push_back(b);
      if (operand_count(mode) > 2) operands.push_back(predicate);
      graph.output("y" + std::to_string(m),
                   graph.pointwise(mode, operands, {.alpha1 = is_bitwise(mode) ? 1.0 : 0.5},
                                   {.compute = compute}),
                   {.dtype = gives_boolean(mode) ? boolean : compute});
    }
    expect_compiles(graph, {kHopper});
  }
}

TEST_F(PointwiseText, EveryDtypeOnEveryArchitecture) {
  Graph graph;
  for (const DType dtype : kAllDTypes) {
    if (is_complex(dtype)) continue;
    const std::string name(to_string(dtype));
    const Value x = graph.input("x_" + name, {33, 80}, dtype);
    const Value operands[] = {x};
    // e8m0 scales are only converted.
    graph.output("y_" + name,
                 dtype == e8m0 ? graph.pointwise(PointwiseMode::identity, operands) : relu(x + 1.0),
                 {.dtype = dtype});
  }
  constexpr int kOfNarrowTypes = 16;  // 16 elements per vector, converted in software
  std::vector<const char*> architectures = {"sm_75", kHopper, "sm_120"};
  if (is_long()) architectures.insert(architectures.end(), {"sm_80", "sm_86", "sm_89", "sm_100"});
  expect_compiles(graph, architectures, kOfNarrowTypes);
}

TEST_F(PointwiseText, BroadcastsStridesScalarsAndIndices) {
  Graph graph;
  const Value x = graph.input("x", {8, 16, 32, 64}, bf16, channels_last);
  const Value bias = graph.input("bias", {1, 16, 1, 1}, f32);
  const Value scale = graph.scalar("scale", f32, 4);
  const Value odd = graph.input("odd", {8, 16, 32, 64}, f16, Layout(Dims{100000, 5000, 150, 2}));
  const Value operands[] = {x};
  const Value index = graph.pointwise(PointwiseMode::gen_index, operands, Pointwise{.axis = 1});
  const Value y = gelu(x + bias) * scale + odd + index;
  graph.output("y", y, {.dtype = bf16, .layout = channels_last});
  graph.output("mask", pointwise(PointwiseMode::cmp_gt, y, bias), {.dtype = boolean});
  expect_compiles(graph, {kHopper, "sm_80"});
}

}  // namespace
}  // namespace ashlar::cuda
