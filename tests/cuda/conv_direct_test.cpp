// Direct convolution: kernels of the main shapes compile without spills, and small problems agree
// with the reference.
#include "api/backends.hpp"
#include "cuda/engines/engines.hpp"
#include "direction.hpp"
#include "engine_agrees.hpp"
#include "engine_compiles.hpp"
#include "gpu_check.hpp"

namespace ashlar::cuda {
namespace {

struct DirectProblem {
  std::int64_t images, channels, height, width, filters, window, stride = 1, padding = 0,
                                                                 groups = 1, dilation = 1;
};

Graph convolution(DType dtype, Direction direction, const DirectProblem& p,
                  const Layout& layout = channels_last, bool fused = false) {
  Graph graph;
  ConvAttributes op{.padding = {p.padding, p.padding},
                    .stride = {p.stride, p.stride},
                    .dilation = {p.dilation, p.dilation}};
  const auto out = [&](std::int64_t extent) {
    return (extent + 2 * p.padding - p.dilation * (p.window - 1) - 1) / p.stride + 1;
  };
  const Dims x = {p.images, p.channels, p.height, p.width},
             y = {p.images, p.filters, out(p.height), out(p.width)},
             w = {p.filters, p.channels / p.groups, p.window, p.window};
  if (direction == Direction::forward) {
    Value sum =
        graph.conv(graph.input("x", x, dtype, layout), graph.input("w", w, dtype, layout), op);
    if (fused)
      sum = relu(sum + graph.input("bias", {1, p.filters, 1, 1}, dtype, layout) +
                 graph.input("residual", y, dtype, layout));
    graph.output("y", sum, {.dtype = dtype, .layout = layout});
  } else if (direction == Direction::data) {
    graph.output("dx",
                 graph.conv_backward_data(graph.input("dy", y, dtype, layout),
                                          graph.input("w", w, dtype, layout), op, {.dims = x}),
                 {.dtype = dtype, .layout = layout});
  } else {
    graph.output("dw",
                 graph.conv_backward_filter(graph.input("x", x, dtype, layout),
                                            graph.input("dy", y, dtype, layout), op, {.dims = w}),
                 {.dtype = dtype, .layout = layout});
  }
  return graph;
}

class ConvDirect : public testing::Test {
 protected:
  void SetUp() override {
    if (!nvrtc().is_open) GTEST_SKIP() << nvrtc().reason;
  }
};

TEST_F(ConvDirect, Stem) {
  for (const Direction direction : kDirections)
    expect_compiles(conv_direct_engine(),
                    convolution(bf16, direction, {256, 3, 224, 224, 64, 7, 2, 3}), {kHopper});
  expect_compiles(conv_direct_engine(),
                  convolution(f32, Direction::forward, {256, 3, 224, 224, 64, 7, 2, 3}), {kHopper});
}

TEST_F(ConvDirect, Groups) {
  const DirectProblem sizes = {64, 256, 28, 28, 256, 3, 1, 1, 32};
  expect_compiles(conv_direct_engine(), convolution(bf16, Direction::data, sizes), {kHopper});
  expect_compiles(conv_direct_engine(), convolution(f16, Direction::filter, sizes),
                  {"sm_80", kHopper, "sm_120"});
}

class GpuConvDirect : public testing::Test {
 protected:
  void SetUp() override {
    if (device_count() == 0) GTEST_SKIP() << driver().reason;
  }
};

// Spans of rows, runs of channels, windows that extend outside, filters divided over CTAs.
TEST_F(GpuConvDirect, Stem) {
  const DirectProblem stem = {2, 3, 20, 24, 16, 7, 2, 3};
  for (const Direction direction : kDirections)
    expect_agrees(conv_direct_engine(), convolution(bf16, direction, stem));
  expect_agrees(conv_direct_engine(), convolution(f32, Direction::forward, stem));
  expect_agrees(
      conv_direct_engine(),
      convolution(bf16, Direction::forward, {2, 3, 11, 16, 32, 3, 1, 1}, channels_last, true));
  expect_agrees(conv_direct_engine(),
                convolution(f16, Direction::forward, {1, 3, 9, 13, 40, 3, 1, 1}));
  for (const Direction direction : {Direction::forward, Direction::filter})
    expect_agrees(conv_direct_engine(), convolution(bf16, direction, {1, 3, 16, 32, 24, 8, 8}));
  expect_agrees(conv_direct_engine(),
                convolution(f32, Direction::forward, {1, 4, 9, 17, 40, 3, 2, 1}, row_major));
}

TEST_F(GpuConvDirect, Groups) {
  for (const Direction direction : kDirections) {
    for (const std::int64_t width : {4, 8})
      expect_agrees(conv_direct_engine(),
                    convolution(f16, direction, {2, width * 4, 9, 10, width * 4, 3, 1, 1, 4}));
    expect_agrees(conv_direct_engine(),
                  convolution(bf16, direction, {1, 32, 9, 7, 32, 3, 2, 1, 2}));
    expect_agrees(conv_direct_engine(), convolution(f32, direction, {1, 16, 6, 7, 16, 3, 1, 1, 2}));
    expect_agrees(conv_direct_engine(),
                  convolution(bf16, direction, {1, 12, 7, 7, 6, 3, 1, 2, 3, 2}, row_major));
  }
}

// Packets of elements that are not contiguous cannot be copied by cp.async.
TEST_F(GpuConvDirect, OtherStrides) {
  const Dims x = {2, 8, 6, 5}, w = {8, 8, 3, 3}, y = {2, 8, 6, 5};
  const Layout images_last(Dims{1, 60, 10, 2});
  for (const Layout& of_x : {Layout(channels_last), images_last})
    for (const Layout& of_y : {Layout(row_major), images_last}) {
      Graph graph;
      graph.output("dw", graph.conv_backward_filter(graph.input("x", x, f32, of_x),
                                                    graph.input("dy", y, f32, of_y),
                                                    {.padding = {1, 1}}, {.dims = w}));
      expect_agrees(conv_direct_engine(), graph);
    }
}

// Pointers that are no multiples of 16 bytes.
TEST_F(GpuConvDirect, AnyPointer) {
  for (const Direction direction : kDirections)
    expect_agrees(convolution(bf16, direction, {1, 8, 6, 7, 8, 3, 2, 1, 2}), "cuda.conv_direct",
                  {.offset = 4});
}

// Full f32 precision by splitting into two tf32.
TEST_F(GpuConvDirect, FullPrecision) {
  const DeviceProps device = Device::named("cuda:0").props();
  for (const Direction direction : kDirections)
    for (const DirectProblem& sizes :
         {DirectProblem{1, 3, 12, 16, 16, 7, 2, 3}, {1, 16, 6, 7, 16, 3, 1, 1, 2}}) {
      const Graph graph = convolution(f32, direction, sizes);
      const auto plan = build_plan(
          graph, device, {.allow_tf32 = false, .guard = true, .engine = "cuda.conv_direct"},
          nullptr, true);
      EXPECT_FALSE(plan->notes.tf32 || plan->notes.truncating_accumulation);
      EXPECT_EQ(support::Problem(graph, 3).run(*plan), "");
    }
}

// Infinities and NaN propagate to the results that depend on them and to no others, whatever shares
// an MMA with them.
TEST_F(GpuConvDirect, SpecialValues) {
  for (const Direction direction : kDirections)
    expect_agrees(conv_direct_engine(), convolution(f16, direction, {1, 16, 7, 6, 16, 3, 1, 1, 4}),
                  false, 3, support::Fill::special);
  expect_agrees(conv_direct_engine(), convolution(bf16, Direction::data, {1, 3, 8, 8, 8, 3, 2, 1}),
                false, 3, support::Fill::special);
}

}  // namespace
}  // namespace ashlar::cuda
