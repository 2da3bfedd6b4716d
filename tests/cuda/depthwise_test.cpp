// Depthwise convolution: kernels of the main shapes compile without spills, and small problems
// agree with the reference.
#include "cuda/engines/engines.hpp"
#include "direction.hpp"
#include "engine_agrees.hpp"
#include "engine_compiles.hpp"

namespace ashlar::cuda {
namespace {

class Depthwise : public testing::Test {
 protected:
  void SetUp() override {
    if (!nvrtc().is_open) GTEST_SKIP() << nvrtc().reason;
  }
};

Graph convolution(DType dtype, const Layout& layout, Direction direction, std::int64_t channels,
                  std::int64_t window, std::int64_t stride = 1, std::int64_t dilation = 1,
                  std::int64_t images = 256, std::int64_t extent = 56) {
  Graph graph;
  const std::int64_t pad = window / 2 * dilation;
  const ConvAttributes op{
      .padding = {pad, pad}, .stride = {stride, stride}, .dilation = {dilation, dilation}};
  const std::int64_t out = (extent + 2 * pad - dilation * (window - 1) - 1) / stride + 1;
  const Dims x = {images, channels, extent, extent}, y = {images, channels, out, out},
             w = {channels, 1, window, window};
  if (direction == Direction::forward) {
    const Value bias = graph.input("bias", {1, channels, 1, 1}, dtype, layout);
    graph.output("y",
                 relu(graph.conv(graph.input("x", x, dtype, layout),
                                 graph.input("w", w, dtype, layout), op) +
                      bias),
                 {.dtype = dtype, .layout = layout});
  } else if (direction == Direction::data) {
    graph.output("dx",
                 graph.conv_backward_data(graph.input("dy", y, dtype, layout),
                                          graph.input("w", w, dtype, layout), op, {.dims = x}));
  } else {
    graph.output("dw",
                 graph.conv_backward_filter(graph.input("x", x, dtype, layout),
                                            graph.input("dy", y, dtype, layout), op, {.dims = w}));
  }
  return graph;
}

TEST_F(Depthwise, ThreeByThree) {
  for (const Direction direction : {Direction::forward, Direction::data, Direction::filter}) {
    expect_compiles(depthwise_engine(), convolution(bf16, channels_last, direction, 144, 3),
                    {kHopper});
    expect_compiles(depthwise_engine(), convolution(f32, row_major, direction, 144, 3, 2),
                    {kHopper});
  }
}

TEST_F(Depthwise, SevenBySeven) {
  for (const Direction direction : {Direction::forward, Direction::data, Direction::filter})
    expect_compiles(depthwise_engine(), convolution(f32, channels_last, direction, 96, 7),
                    {kHopper});
  expect_compiles(depthwise_engine(), convolution(f16, channels_last, Direction::filter, 96, 7),
                  {"sm_75", "sm_120"});
}

class GpuDepthwise : public testing::Test {
 protected:
  void SetUp() override {
    if (device_count() == 0) GTEST_SKIP() << driver().reason;
  }
};

// Partial tiles, windows that extend outside, strides, dilation.
TEST_F(GpuDepthwise, EveryDirection) {
  for (const Direction direction : kDirections) {
    expect_agrees(depthwise_engine(),
                  convolution(bf16, channels_last, direction, 8, 3, 1, 1, 2, 13),
                  direction == Direction::forward);
    expect_agrees(depthwise_engine(), convolution(bf16, row_major, direction, 4, 3, 1, 1, 2, 13));
    for (const Layout& layout : {channels_last, row_major})
      expect_agrees(depthwise_engine(), convolution(f32, layout, direction, 6, 5, 2, 1, 2, 11));
    expect_agrees(depthwise_engine(),
                  convolution(f16, channels_last, direction, 4, 3, 1, 2, 1, 10));
    expect_agrees(depthwise_engine(), convolution(f64, row_major, direction, 3, 3, 3, 1, 2, 8));
  }
}

// Weights in registers and in shared memory.
TEST_F(GpuDepthwise, SevenBySeven) {
  for (const Direction direction : kDirections)
    expect_agrees(depthwise_engine(),
                  convolution(bf16, channels_last, direction, 16, 7, 1, 1, 1, 9));
  expect_agrees(depthwise_engine(),
                convolution(f32, channels_last, Direction::forward, 4, 7, 1, 1, 1, 9));
}

}  // namespace
}  // namespace ashlar::cuda
