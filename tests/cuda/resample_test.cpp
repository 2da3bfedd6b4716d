// Pooling: kernels of the main shapes compile without spills, and small problems agree with the
// reference.
#include "cuda/engines/engines.hpp"
#include "engine_agrees.hpp"
#include "engine_compiles.hpp"

namespace ashlar::cuda {
namespace {

class Pooling : public testing::Test {
 protected:
  void SetUp() override {
    if (!nvrtc().is_open) GTEST_SKIP() << nvrtc().reason;
  }
};

const Dims kPooledImages = {32, 64, 112, 112};
const ResampleAttributes kThree = {.window = {3, 3}, .stride = {2, 2}, .padding = {1, 1}};

ResampleAttributes with_mode(ResampleMode mode) {
  ResampleAttributes result = kThree;
  result.mode = mode;
  return result;
}

enum class Positions { none, of_x, of_relu };

Graph forward(DType dtype, const Layout& layout, ResampleMode mode, Positions positions,
              const Dims& images = kPooledImages) {
  Graph graph;
  const Value x = graph.input("x", images, dtype, layout);
  if (positions != Positions::none) {
    // Half of the elements of relu(x) are equal: the first maximum counts.
    const Value from = positions == Positions::of_x ? x : relu(x);
    const auto [y, index] = graph.resample_with_index(from, with_mode(mode), i8);
    graph.output("y", y);
    graph.output("index", index);
  } else {
    graph.output("y", relu(graph.resample(x, with_mode(mode))), {.dtype = dtype});
  }
  return graph;
}

Graph backward(DType dtype, const Layout& layout, ResampleMode mode, bool by_x,
               const Dims& images = kPooledImages) {
  Graph graph;
  const Dims y = {images[0], images[1], (images[2] + 1) / 2, (images[3] + 1) / 2};
  const Value x = graph.input("x", images, dtype, layout);
  const Value dy = graph.input("dy", y, dtype, layout);
  const bool max = mode == ResampleMode::maxpool;
  const Value index = max && !by_x ? graph.input("index", y, i32, layout) : Value{};
  graph.output("dx", graph.resample_backward(dy, with_mode(mode), {.dims = images},
                                             by_x ? x : Value{}, index));
  return graph;
}

TEST_F(Pooling, Forward) {
  for (const Layout& layout : {channels_last, row_major}) {
    expect_compiles(resample_engine(),
                    forward(bf16, layout, ResampleMode::maxpool, Positions::none), {kHopper});
    for (const Positions positions : {Positions::of_x, Positions::of_relu})
      expect_compiles(resample_engine(), forward(f16, layout, ResampleMode::maxpool, positions),
                      {kHopper});
    expect_compiles(resample_engine(),
                    forward(f32, layout, ResampleMode::avgpool_exclude_padding, Positions::none),
                    {kHopper});
  }
}

TEST_F(Pooling, Global) {
  for (const Layout& layout : {channels_last, row_major})
    for (const DType dtype : {bf16, f32}) {
      const Dims images = {256, 2048, 7, 7};
      const ResampleAttributes op{.mode = ResampleMode::avgpool_include_padding, .window = {7, 7}};
      Graph graph;
      graph.output("y", graph.resample(graph.input("x", images, dtype, layout), op));
      expect_compiles(resample_engine(), graph, {kHopper, "sm_75"});
      Graph back;
      const Value dy = back.input("dy", {256, 2048, 1, 1}, dtype, layout);
      back.output("dx", back.resample_backward(dy, op, {.dims = images, .layout = layout}));
      expect_compiles(resample_engine(), back, {kHopper});
    }
}

TEST_F(Pooling, Backward) {
  for (const Layout& layout : {channels_last, row_major}) {
    expect_compiles(resample_engine(),
                    backward(bf16, layout, ResampleMode::avgpool_exclude_padding, false),
                    {kHopper});
    expect_compiles(resample_engine(), backward(bf16, layout, ResampleMode::maxpool, true),
                    {kHopper});
  }
  expect_compiles(resample_engine(), backward(f16, channels_last, ResampleMode::maxpool, false),
                  {"sm_75", "sm_120"});
}

Graph interpolation(DType dtype, const Layout& layout, const Dims& images, ResampleMode mode,
                    const Dims& size, bool align_corners = false) {
  ResampleAttributes op{.mode = mode};
  op.size = size;
  op.align_corners = align_corners;
  Graph graph;
  const Value x = graph.input("x", images, dtype, layout);
  graph.output("y", relu(graph.resample(x, op)), {.dtype = dtype});
  return graph;
}
constexpr ResampleMode kInterpolations[] = {ResampleMode::nearest, ResampleMode::bilinear};

TEST_F(Pooling, Interpolation) {
  for (const ResampleMode mode : kInterpolations)
    for (const Layout& layout : {channels_last, row_major})
      expect_compiles(resample_engine(),
                      interpolation(bf16, layout, {8, 64, 56, 56}, mode, {112, 112}),
                      {kHopper, "sm_75"});
}

class PoolingRuns : public testing::Test {
 protected:
  void SetUp() override {
    if (device_count() == 0) GTEST_SKIP() << driver().reason;
  }
};

constexpr ResampleMode kModes[] = {ResampleMode::maxpool, ResampleMode::avgpool_include_padding,
                                   ResampleMode::avgpool_exclude_padding};

// Packets of channels and of pixels, partial tiles.
TEST_F(PoolingRuns, Forward) {
  for (const Layout& layout : {channels_last, row_major}) {
    for (const ResampleMode mode : kModes) {
      expect_agrees(resample_engine(),
                    forward(bf16, layout, mode, Positions::none, {2, 16, 16, 32}), is_long());
      expect_agrees(resample_engine(),
                    forward(f32, layout, mode, Positions::none, {2, 12, 11, 13}));
    }
    expect_agrees(resample_engine(),
                  forward(f16, layout, ResampleMode::maxpool, Positions::of_relu, {2, 8, 12, 24}),
                  is_long());
    // NaN, zeros of both signs, infinities.
    for (const DType dtype : {bf16, f16, f32})
      expect_agrees(resample_engine(),
                    forward(dtype, layout, ResampleMode::maxpool, Positions::of_x, {2, 8, 12, 24}),
                    is_long(), 3, support::Fill::special);
  }
}

// Global pooling of images that are no multiple of a packet.
TEST_F(PoolingRuns, Global) {
  for (const Layout& layout : {channels_last, row_major})
    for (const ResampleMode mode : kModes) {
      const ResampleAttributes op{.mode = mode, .window = {7, 7}};
      Graph graph;
      const Value x = graph.input("x", {3, 40, 7, 7}, bf16, layout);
      graph.output("y", graph.resample(x, op));
      expect_agrees(resample_engine(), graph);
      if (mode == ResampleMode::maxpool) continue;
      Graph back;
      const Value dy = back.input("dy", {3, 40, 1, 1}, f32, layout);
      back.output("dx", back.resample_backward(dy, op, {.dims = {3, 40, 7, 7}, .layout = layout}));
      expect_agrees(resample_engine(), back);
    }
}

// Images with an even number of words and of half words, few images, and computed inputs.
TEST_F(PoolingRuns, GlobalOfOtherSizes) {
  for (const Layout& layout : {channels_last, row_major})
    for (const auto& [dtype, window] : {std::pair{f32, Dims{4, 6}}, std::pair{f16, Dims{4, 6}},
                                        std::pair{bf16, Dims{3, 6}}, std::pair{f32, Dims{9, 9}}})
      for (const bool computed : {false, true}) {
        Graph graph;
        const Value x = graph.input("x", {5, 24, window[0], window[1]}, dtype, layout);
        const ResampleAttributes op{.mode = ResampleMode::avgpool_include_padding,
                                    .window = window};
        graph.output("y", graph.resample(computed ? relu(x) : x, op));
        expect_agrees(resample_engine(), graph);
      }
}

TEST_F(PoolingRuns, Backward) {
  for (const Layout& layout : {channels_last, row_major}) {
    for (const ResampleMode mode : kModes)
      expect_agrees(resample_engine(), backward(bf16, layout, mode, false, {2, 16, 16, 32}),
                    is_long());
    // Positions in scratch as bytes and as 4-bit values.
    expect_agrees(resample_engine(),
                  backward(f32, layout, ResampleMode::maxpool, true, {2, 12, 11, 13}));
    expect_agrees(resample_engine(),
                  backward(bf16, layout, ResampleMode::maxpool, true, {2, 16, 16, 40}));
    expect_agrees(resample_engine(), backward(f32, layout, ResampleMode::avgpool_exclude_padding,
                                              false, {1, 4, 7, 9}));
  }
}

// Larger, smaller, by a non-integer factor, to one pixel; packets of channels and of pixels.
TEST_F(PoolingRuns, Interpolation) {
  for (const ResampleMode mode : kInterpolations)
    for (const Layout& layout : {channels_last, row_major}) {
      expect_agrees(resample_engine(), interpolation(bf16, layout, {2, 16, 5, 8}, mode, {10, 16}));
      expect_agrees(resample_engine(), interpolation(f32, layout, {2, 6, 9, 7, 5}, mode, {4, 1, 11},
                                                     mode == ResampleMode::bilinear));
    }
}

}  // namespace
}  // namespace ashlar::cuda
