// GEMM and convolution on tensor cores by mma.sync: kernels of the main shapes compile without
// spills for every architecture, and small problems agree with the reference.
#include <algorithm>
#include <cstdlib>
#include <tuple>

#include "api/backends.hpp"
#include "cuda/engines/engines.hpp"
#include "direction.hpp"
#include "engine_agrees.hpp"
#include "engine_compiles.hpp"
#include "gemm_graphs.hpp"
#include "some_configs.hpp"

namespace ashlar::cuda {
namespace {

struct Matrices {
  std::int64_t m = 72, n = 136, k = 96;
  bool a_transposed = false, b_transposed = false;
  bool with_bias = false;
};

Graph matmul_graph(DType dtype, const Matrices& shape) {
  Graph graph;
  const auto matrix = [&](const char* name, std::int64_t rows, std::int64_t columns,
                          bool transposed) {
    return transposed ? graph.transpose(graph.input(name, {columns, rows}, dtype), {1, 0})
                      : graph.input(name, {rows, columns}, dtype);
  };
  Value c = graph.matmul(matrix("a", shape.m, shape.k, shape.a_transposed),
                         matrix("b", shape.k, shape.n, shape.b_transposed));
  if (shape.with_bias) c = relu(c + graph.input("bias", {1, shape.n}, dtype));
  graph.output("c", c, {.dtype = dtype == DType::i8 ? DType::i32 : dtype});
  return graph;
}

struct Convolution {
  Dims x = {2, 16, 9, 11}, w = {24, 16, 3, 3};
  ConvAttributes op = {.padding = {1, 1}};
  Layout layout = channels_last;
};

Graph convolution(DType dtype, const Convolution& shape, Direction direction) {
  Graph sizes;
  const Dims y =
      sizes.conv(sizes.input("x", shape.x, f32), sizes.input("w", shape.w, f32), shape.op).dims();
  Graph graph;
  const auto input = [&](const char* name, const Dims& dims) {
    return graph.input(name, dims, dtype, shape.layout);
  };
  const ashlar::OutputSpec stored{.layout = shape.layout};
  if (direction == Direction::forward)
    graph.output("y", graph.conv(input("x", shape.x), input("w", shape.w), shape.op), stored);
  else if (direction == Direction::data)
    graph.output(
        "dx",
        graph.conv_backward_data(input("dy", y), input("w", shape.w), shape.op, {.dims = shape.x}),
        stored);
  else
    graph.output("dw",
                 graph.conv_backward_filter(input("x", shape.x), input("dy", y), shape.op,
                                            {.dims = shape.w}),
                 stored);
  return graph;
}

class GemmSm80 : public testing::Test {
 protected:
  void SetUp() override {
    if (!nvrtc().is_open) GTEST_SKIP() << nvrtc().reason;
  }
};

// Every configuration and architecture with ASHLAR_TEST_LONG, else the first one.
std::vector<const char*> architectures(const char* usual) {
  if (is_long()) return {"sm_80", "sm_89", "sm_90a", "sm_120"};
  return {usual};
}

TEST_F(GemmSm80, MatricesCompileWithoutSpills) {
  expect_compiles(gemm_sm80_engine(), matmul_graph(bf16, {4096, 4096, 4096, false, true, true}),
                  architectures("sm_80"), is_long());
  if (is_long())
    for (const DType dtype : {f32, f64, DType::i8, DType::e4m3})
      expect_compiles(gemm_sm80_engine(), matmul_graph(dtype, {512, 512, 512}),
                      architectures("sm_90a"), true);
}

TEST_F(GemmSm80, ConvolutionsCompileWithoutSpills) {
  for (const auto& [direction, dtype, usual] :
       {std::tuple(Direction::forward, bf16, "sm_89"), std::tuple(Direction::data, bf16, "sm_120"),
        std::tuple(Direction::filter, f32, "sm_90a")})
    expect_compiles(conv_sm80_engine(),
                    convolution(dtype, {{32, 256, 28, 28}, {256, 256, 3, 3}}, direction),
                    architectures(usual), is_long());
}

// NCHW: operands are repacked first, which is cheaper by far.
TEST(GemmSm80Plans, RepacksOtherLayouts) {
  const DeviceProps a100 = known_gpu("sm_80");
  for (const ConvDirection direction : {ConvDirection::forward, ConvDirection::data}) {
    const ConvGraph nchw{.direction = direction, .layout = row_major};
    const auto plan = build_plan(nchw.graph(), a100, {}, nullptr, false);
    ASSERT_EQ(plan->steps.size(), 1u);
    EXPECT_EQ(plan->steps[0].choice.engine->id(), "cuda.conv_sm80");
    EXPECT_TRUE(is_packed(plan->steps[0].choice.config));
    const auto ordered =
        build_plan(ConvGraph{.direction = direction}.graph(), a100, {}, nullptr, false);
    EXPECT_FALSE(is_packed(ordered->steps.at(0).choice.config));
  }
  // The pre-pass computes in f32 and cannot repack f64.
  const ConvGraph wide{.dtype = f64, .layout = row_major};
  const auto plan = build_plan(wide.graph(), a100, {}, nullptr, false);
  for (const Config& config : conv_sm80_engine().configs(plan->steps.at(0).region, a100))
    EXPECT_FALSE(is_packed(config));
}

class GpuGemmSm80 : public testing::Test {
 protected:
  void SetUp() override {
    if (device_count() == 0) GTEST_SKIP() << driver().reason;
  }
};

TEST_F(GpuGemmSm80, Transposes) {
  expect_agrees(gemm_sm80_engine(), matmul_graph(bf16, {.b_transposed = true}));
  expect_agrees(gemm_sm80_engine(), matmul_graph(bf16, {.a_transposed = true}));
}

TEST_F(GpuGemmSm80, Repacked) {
  for (const ConvDirection direction : {ConvDirection::forward, ConvDirection::data})
    for (const DType dtype : {bf16, f32}) {
      const ConvGraph small{.dtype = dtype,
                            .direction = direction,
                            .images = 2,
                            .channels = 32,
                            .filters = 48,
                            .extent = {7, 6},
                            .layout = row_major,
                            .fused = direction == ConvDirection::forward};
      expect_agrees(conv_sm80_engine(), small.graph(), true, 3, support::Fill::plain,
                    Device::named("cuda:0").props(), is_packed);
    }
}

// Extents without alignment: element-by-element loads.
TEST_F(GpuGemmSm80, OddExtents) {
  expect_agrees(gemm_sm80_engine(), matmul_graph(f16, {65, 31, 77, false, true, false}));
}

TEST_F(GpuGemmSm80, EveryType) {
  for (const DType dtype : {f32, f64, DType::i8, DType::e4m3})
    expect_agrees(gemm_sm80_engine(), matmul_graph(dtype, {40, 48, 160, true, true, false}));
}

// f32 keeps its precision, including sums of many terms of equal sign.
TEST_F(GpuGemmSm80, F32SplitIntoTf32) {
  for (const std::int64_t depth : {5, 600}) {
    const Graph graph = matmul_graph(f32, {33, 20, depth, false, true, false});
    const DeviceProps device = Device::named("cuda:0").props();
    const auto plan =
        build_plan(graph, device, {.allow_tf32 = false, .engine = "cuda.gemm_sm80"}, nullptr, true);
    EXPECT_FALSE(plan->notes.tf32 || plan->notes.truncating_accumulation);
    support::Problem problem(graph, 5);
    EXPECT_EQ(problem.run(*plan), "");
  }
}

// Few results with a large K: split-K, reduced by a second launch.
TEST_F(GpuGemmSm80, SplitK) {
  expect_agrees(gemm_sm80_engine(), matmul_graph(bf16, {40, 24, 1024, false, true, true}));
}

TEST_F(GpuGemmSm80, Convolutions) {
  for (const Direction direction : kDirections) {
    expect_agrees(conv_sm80_engine(),
                  convolution(bf16, {.op = {.padding = {1, 1}, .stride = {2, 2}}}, direction));
    expect_agrees(conv_sm80_engine(), convolution(f32, {.layout = row_major}, direction));
  }
}

TEST_F(GpuGemmSm80, OddConvolutions) {
  for (const Direction direction : kDirections) {
    expect_agrees(conv_sm80_engine(), convolution(f16,
                                                  {{2, 6, 11, 9},
                                                   {9, 2, 3, 2},
                                                   {.padding = {2, 0},
                                                    .post_padding = Dims{1, 3},
                                                    .stride = {2, 1},
                                                    .dilation = {2, 3},
                                                    .mode = ConvMode::convolution,
                                                    .alpha = 2.0}},
                                                  direction));
    expect_agrees(
        conv_sm80_engine(),
        convolution(
            bf16, {{1, 8, 5, 6, 7}, {16, 8, 3, 1, 3}, {.padding = {1, 0, 1}, .stride = {3, 1, 2}}},
            direction));
  }
}

}  // namespace
}  // namespace ashlar::cuda
