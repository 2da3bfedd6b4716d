// Tail reductions behind GEMMs: one region of a GEMM and one small launch, in agreement with the
// oracle, for every tile, direction and kind of reduction.
#include "api/backends.hpp"
#include "cuda/engines/engines.hpp"
#include "engine_agrees.hpp"
#include "engine_compiles.hpp"
#include "gpu_check.hpp"
#include "plan/partition.hpp"
#include "support/problem.hpp"

namespace ashlar::cuda {
namespace {

struct GradientMatrices {
  std::int64_t batches = 1, rows = 300, columns = 264, depth = 200;
  DType operands = bf16, result = bf16;
  bool transpose_result = false;
};

// dx = (dy w') * (y > 0), and `reduce` of it.
template <class Reduce>
Graph masked_product(const GradientMatrices& shape, Reduce reduce) {
  Graph graph;
  const Value dy = graph.input("dy", {shape.batches, shape.rows, shape.depth}, shape.operands);
  const Value w =
      graph.transpose(graph.input("w", {1, shape.columns, shape.depth}, shape.operands), {0, 2, 1});
  const Value y = graph.input("y", {shape.batches, shape.rows, shape.columns}, bf16);
  const Value dx = pointwise(PointwiseMode::relu_bwd, graph.matmul(dy, w), y);
  const Dims strides = {shape.rows * shape.columns, 1, shape.rows};
  graph.output(
      "dx", dx,
      {.dtype = shape.result, .layout = shape.transpose_result ? Layout(strides) : row_major});
  reduce(graph, dx);
  return graph;
}

// Bias gradient, row means, maximum magnitude of all, column minima.
Graph every_reduction(const GradientMatrices& shape, bool by_batch) {
  return masked_product(shape, [&](Graph& graph, Value dx) {
    const auto axes = [&](Dims dims) {
      if (!by_batch) dims.push_back(0);
      return dims;
    };
    graph.output("dbias", graph.reduce(dx, ReductionMode::add, axes({1})), {.dtype = f32});
    graph.output("means", graph.reduce(dx, ReductionMode::avg, axes({2})), {.dtype = f32});
    graph.output("amax", graph.reduce(dx, ReductionMode::amax), {.dtype = f32});
    graph.output("least", graph.reduce(dx, ReductionMode::min, axes({1})), {.dtype = bf16});
  });
}

// The result as fp8 with a scale, and the maximum magnitude before that.
Graph quantized(const GradientMatrices& shape) {
  Graph graph;
  const Value a = graph.input("a", {1, shape.rows, shape.depth}, shape.operands);
  const Value b =
      graph.transpose(graph.input("b", {1, shape.columns, shape.depth}, shape.operands), {0, 2, 1});
  const Value c = graph.matmul(a, b);
  graph.output("c", c * graph.input("scale", {1, 1, 1}, f32), {.dtype = DType::e4m3});
  graph.output("amax", graph.reduce(c, ReductionMode::amax), {.dtype = f32});
  return graph;
}

struct Images {
  std::int64_t images = 2, channels = 64, filters = 72, extent = 14, taps = 3, groups = 1;
  std::int64_t stride = 1;
  bool backward = false, channels_last = true, norm_before = false;
  DType dtype = bf16;
};

// Convolution, bias, relu and the sums of batch normalisation.
Graph with_stats(const Images& s) {
  Graph graph;
  const Layout& layout = s.channels_last ? channels_last : row_major;
  const std::int64_t result = s.backward ? s.channels : s.filters, pad = s.taps / 2;
  const ConvAttributes conv{.padding = {pad, pad}, .stride = {s.stride, s.stride}};
  const std::int64_t out = (s.extent + 2 * pad - s.taps) / s.stride + 1;
  const Value w =
      graph.input("w", {s.filters, s.channels / s.groups, s.taps, s.taps}, s.dtype, channels_last);
  Value y;
  if (s.backward) {
    const Value dy = graph.input("dy", {s.images, s.filters, out, out}, s.dtype, layout);
    y = graph.conv_backward_data(dy, w, conv,
                                 {.dims = Dims{s.images, s.channels, s.extent, s.extent}});
  } else {
    Value x = graph.input("x", {s.images, s.channels, s.extent, s.extent}, s.dtype, layout);
    if (s.norm_before)
      x = relu(x * graph.input("scale", {1, s.channels, 1, 1}, s.dtype) +
               graph.input("shift", {1, s.channels, 1, 1}, s.dtype));
    y = graph.conv(x, w, conv);
  }
  y = relu(y + graph.input("bias", {1, result, 1, 1}, f32));
  graph.output("y", y, {.dtype = s.dtype, .layout = layout});
  const auto stats = graph.apply(GenStats{}, {{GenStats::x, y}}, {GenStats::sum, GenStats::sq_sum});
  graph.output("sum", stats[GenStats::sum]);
  graph.output("sq_sum", stats[GenStats::sq_sum]);
  return graph;
}

// The regions of a graph on an H200.
std::vector<std::string> regions_of(const Graph& graph, const CompileOptions& options = {}) {
  const auto plan = build_plan(graph, Device::named("h200").props(), options, nullptr, false);
  std::vector<std::string> result;
  for (const PlanData::Step& step : plan->steps)
    result.push_back(std::string(step.choice.engine->id()) + ": " +
                     step.region.to_text(plan->lowered.graph));
  return result;
}

using Regions = std::vector<std::string>;

TEST(GemmTails, FuseIntoTheGemmRegion) {
  EXPECT_EQ(regions_of(every_reduction({.rows = 4096, .columns = 4096, .depth = 4096}, true)),
            (Regions{"cuda.gemm_sm90: matmul + relu_bwd + reduction + reduction + reduction + "
                     "reduction"}));
  EXPECT_EQ(regions_of(with_stats({.images = 256, .channels = 256, .filters = 256})),
            Regions{"cuda.conv_sm90: conv_forward + add + relu_fwd + gen_stats"});
  EXPECT_EQ(regions_of(with_stats(
                {.images = 256, .channels = 256, .filters = 256, .stride = 2, .backward = true})),
            Regions{"cuda.conv_sm90: conv_backward_data + add + relu_fwd + gen_stats"});
  EXPECT_EQ(regions_of(quantized({.rows = 4096, .columns = 4096, .depth = 4096})),
            Regions{"cuda.gemm_sm90: matmul + mul + reduction"});
}

// A prologue does not separate the reductions: either both are fused, or the prologue is separate.
TEST(GemmTails, FuseWhateverThePrologue) {
  const Regions regions =
      regions_of(with_stats({.images = 256, .channels = 256, .filters = 256, .norm_before = true}));
  const std::string last = "conv_forward + add + relu_fwd + gen_stats";
  EXPECT_TRUE(regions.back().ends_with(last)) << regions.back();
  EXPECT_TRUE(regions.back().starts_with("cuda.conv_sm90: ")) << regions.back();
}

// Where no engine supports both, GEMMs are as fast as without.
TEST(GemmTails, AreSeparateWhereTheGemmNeedsAnotherEngine) {
  const Regions few_channels = regions_of(with_stats(
      {.images = 64, .channels = 3, .filters = 64, .extent = 224, .taps = 7, .stride = 2}));
  ASSERT_EQ(few_channels.size(), 2u);
  EXPECT_EQ(few_channels[1].find("cuda.conv_sm90"), std::string::npos);
  const Regions strict = regions_of(with_stats({.images = 8, .dtype = f32}), {.allow_tf32 = false});
  ASSERT_EQ(strict.size(), 2u);
  const Regions asked = regions_of(every_reduction({}, false), {.engine = "cuda.gemm_sm80"});
  ASSERT_EQ(asked.size(), 5u);
  EXPECT_EQ(asked[0], "cuda.gemm_sm80: matmul + relu_bwd");
  // Sums over the pixels of every single image.
  const Regions pooled = regions_of(masked_product({.batches = 2}, [](Graph& graph, Value dx) {
    graph.output("by_batch", graph.reduce(dx, ReductionMode::add, {1, 2}), {.dtype = f32});
  }));
  EXPECT_EQ(pooled.size(), 2u);
}

// Configurations that an engine has for a graph as one region: a third of them without
// ASHLAR_TEST_LONG. Those without reductions are compiled in other tests.
void expect_compiles_whole(const CudaEngine& engine, const Graph& graph) {
  if (!nvrtc().is_open) GTEST_SKIP() << nvrtc().reason;
  const DeviceProps device = known_gpu(kHopper);
  const LoweredGraph lowered = lower(graph, true);
  const std::vector<FusionLimits> limits(lowered.graph.nodes().size(), {.tail = true});
  const std::vector<Region> regions = partition(lowered, limits);
  ASSERT_EQ(regions.size(), 1u);
  const Region& region = regions[0];
  ASSERT_FALSE(region.reductions.empty());
  const Support support = engine.supports(region, device);
  ASSERT_TRUE(bool(support)) << support.reason();
  std::vector<Config> configs = engine.configs(region, device);
  keep_every(3, configs);
  expect_compiles(engine, lowered.graph, region, configs, device);
}

TEST(GemmTails, EveryTileOfMatricesCompilesWithoutSpills) {
  expect_compiles_whole(gemm_sm90_engine(),
                        every_reduction({.rows = 4096, .columns = 4096, .depth = 4096}, true));
}
TEST(GemmTails, EveryTileOfConvolutionsCompilesWithoutSpills) {
  expect_compiles_whole(conv_sm90_engine(),
                        with_stats({.images = 256, .channels = 256, .filters = 256}));
}

TEST(GemmTails, EveryTileOfGroupsCompilesWithoutSpills) {
  expect_compiles_whole(
      conv_sm90_engine(),
      with_stats({.images = 64, .channels = 512, .filters = 512, .extent = 28, .groups = 32}));
}
TEST(GemmTails, EveryTileWithPrologueCompilesWithoutSpills) {
  expect_compiles_whole(
      conv_sm90_engine(),
      with_stats({.images = 256, .channels = 256, .filters = 256, .norm_before = true}));
  Graph graph;
  const Value a =
      relu(graph.input("a", {1, 4096, 4096}, bf16) * graph.input("s", {1, 1, 4096}, f32));
  const Value c = graph.matmul(a, graph.input("b", {1, 4096, 4096}, bf16));
  graph.output("c", c, {.dtype = bf16});
  graph.output("sums", graph.reduce(c, ReductionMode::add, {1}), {.dtype = f32});
  expect_compiles_whole(gemm_sm90_engine(), graph);
}
TEST(GemmTails, EveryTileOfFewBitsCompilesWithoutSpills) {
  expect_compiles_whole(
      gemm_sm90_engine(),
      quantized({.rows = 4096, .columns = 4096, .depth = 4096, .operands = DType::e4m3}));
}

class GpuGemmTails : public GpuTest {
 protected:
  // The GEMM and its reductions are one region; the engine agrees with the oracle.
  static void expect_agrees_whole(const CudaEngine& engine, const Graph& graph,
                                  bool all_configs = false,
                                  support::Fill fill = support::Fill::plain) {
    const auto plan = build_plan(graph, Device::named("cuda:0").props(), {}, nullptr, false);
    ASSERT_EQ(plan->steps.size(), 1u) << plan->steps[1].region.to_text(plan->lowered.graph);
    expect_agrees(engine, graph, all_configs, 3, fill);
  }
};

TEST_F(GpuGemmTails, EveryTileOfMatrices) {
  expect_agrees_whole(gemm_sm90_engine(), every_reduction({}, true), true);
}
TEST_F(GpuGemmTails, EveryShapeOfReductions) {
  for (const bool by_batch : {false, true})
    for (const bool transpose_result : {false, true})
      expect_agrees_whole(gemm_sm90_engine(),
                          every_reduction({.batches = 3,
                                           .rows = 136,
                                           .columns = 72,
                                           .depth = 88,
                                           .transpose_result = transpose_result},
                                          by_batch));
  // Columns with a vector length of 1.
  expect_agrees_whole(gemm_sm90_engine(),
                      every_reduction({.rows = 70, .columns = 35, .depth = 64}, true));
}
TEST_F(GpuGemmTails, NonfiniteValues) {
  expect_agrees_whole(gemm_sm90_engine(),
                      every_reduction({.rows = 70, .columns = 72, .depth = 64}, true), false,
                      support::Fill::special);
}
TEST_F(GpuGemmTails, FewerBits) {
  expect_agrees_whole(gemm_sm90_engine(), quantized({.rows = 200, .columns = 136, .depth = 256}));
  expect_agrees_whole(
      gemm_sm90_engine(),
      quantized({.rows = 200, .columns = 136, .depth = 256, .operands = DType::e4m3}));
}
TEST_F(GpuGemmTails, EveryTileOfConvolutions) {
  expect_agrees_whole(conv_sm90_engine(), with_stats({}), true);
}
// Small ones, for which other engines would be chosen.
TEST_F(GpuGemmTails, EveryKindOfConvolution) {
  const GpuRunOptions run{.options = {.engine = "cuda.conv_sm90"}};
  int whole = 0;  // plans of one region: for the smallest, the estimate may prefer two
  const auto check = [&](const Images& images) {
    const Graph graph = with_stats(images);
    const DeviceProps device = Device::named("cuda:0").props();
    whole += build_plan(graph, device, run.options, nullptr, false)->steps.size() == 1 ? 1 : 0;
    expect_agrees(graph, "cuda.conv_sm90", run);
  };
  for (const bool backward : {false, true})
    for (const std::int64_t stride : {1, 2})  // large enough to be fused by estimate
      check({.extent = stride == 1 ? 9 : 33, .stride = stride, .backward = backward});
  check({.filters = 128, .extent = 9, .groups = 2});
  check({.extent = 9, .channels_last = false});
  EXPECT_GE(whole, 4);
}
// Pointers that are not multiples of 16 bytes, which TMA does not support.
TEST_F(GpuGemmTails, AnyPointer) {
  const auto check = [&](const Graph& graph, const char* engine) {
    const GpuRunOptions run{.offset = 4, .options = {.engine = engine}};
    const DeviceProps device = Device::named("cuda:0").props();
    ASSERT_EQ(build_plan(graph, device, run.options, nullptr, false)->steps.size(), 1u);
    expect_agrees(graph, engine, run);
  };
  check(every_reduction({.batches = 2, .rows = 70, .columns = 72, .depth = 88}, false),
        "cuda.gemm_sm90");
  check(with_stats({.extent = 5}), "cuda.conv_sm90");
}

}  // namespace
}  // namespace ashlar::cuda
