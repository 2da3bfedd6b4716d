// Depthwise convolutions as kernel text: the main shapes compile without spills.
#include "cuda/engines/engines.hpp"
#include "engine_compiles.hpp"

namespace ashlar::cuda {
namespace {

class Depthwise : public testing::Test {
 protected:
  void SetUp() override {
    if (!nvrtc().is_open) GTEST_SKIP() << nvrtc().reason;
  }
};

constexpr const char* kHopper = "sm_90a";
enum class Direction : std::uint8_t { forward, data, filter };

Graph convolution(DType dtype, const Layout& layout, Direction direction, std::int64_t channels,
                  std::int64_t window, std::int64_t stride = 1) {
  Graph graph;
  const std::int64_t pad = window / 2;
  const ConvAttributes op{.padding = {pad, pad}, .stride = {stride, stride}};
  const Dims x = {256, channels, 56, 56}, y = {256, channels, 56 / stride, 56 / stride},
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

}  // namespace
}  // namespace ashlar::cuda
