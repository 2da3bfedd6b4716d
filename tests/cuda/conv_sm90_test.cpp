// Convolutions of the sm_90a core: kernels of the main shapes compile without spills, and small
// ones agree with the oracle.
#include "conv_sm90_graphs.hpp"
#include "engine_compiles.hpp"
#include "some_configs.hpp"

namespace ashlar::cuda {
namespace {

class ConvSm90 : public testing::Test {
 protected:
  void SetUp() override {
    if (!nvrtc().is_open) GTEST_SKIP() << nvrtc().reason;
  }
  static void expect_no_spills(const Convolution& convolution) {
    expect_compiles(conv_sm90_engine(), convolution.graph(), {"sm_90a"});
  }
};

// Tiles with the most accumulators per thread, which leave the fewest registers.
TEST_F(ConvSm90, LargeTilesWithoutSpills) {
  const SomeConfigs large(conv_sm90_engine(), [](const Config& config) {
    const std::int64_t sums = config.knob("tile_m") * config.knob("tile_n") /
                              (config.knob("ping_pong") != 0 ? 1 : config.knob("consumers"));
    return config.knob("cluster") == 1 && sums >= 128 * 128;
  });
  const Convolution convolution{.images = 64,
                                .channels = 512,
                                .filters = 512,
                                .extent = {28, 28},
                                .op = {.padding = {1, 1}},
                                .fused = true};
  expect_compiles(large, convolution.graph(), {"sm_90a"}, true);
}

// Small K and wide results: TMA stores, resident filters.
TEST_F(ConvSm90, TmaStoresWithoutSpills) {
  const SomeConfigs boxes(conv_sm90_engine(), [](const Config& config) {
    const std::int64_t sums = config.knob("tile_m") * config.knob("tile_n") /
                              (config.knob("ping_pong") != 0 ? 1 : config.knob("consumers"));
    return config.knob("boxes") > 0 && config.knob("cluster") == 1 && sums >= 128 * 128;
  });
  for (const DType dtype : {bf16, f32})
    for (const bool fused : {false, true}) {
      const Convolution convolution{.dtype = dtype,
                                    .backward = dtype == bf16,
                                    .images = 256,
                                    .channels = dtype == bf16 ? 1024 : 64,
                                    .filters = 256,
                                    .extent = {14, 14},
                                    .window = {1, 1},
                                    .fused = fused};
      expect_compiles(boxes, convolution.graph(), {"sm_90a"}, true, 0, 2);
    }
  const Convolution deep{
      .images = 64, .channels = 512, .filters = 512, .extent = {28, 28}, .fused = true};
  expect_compiles(boxes, deep.graph(), {"sm_90a"}, true);
}

TEST_F(ConvSm90, BackwardAndOtherTypesWithoutSpills) {
  const ConvAttributes strided{.padding = {1, 1}, .stride = {2, 2}};
  for (const DType dtype : {bf16, f32})
    expect_no_spills({.dtype = dtype,
                      .backward = true,
                      .images = 64,
                      .channels = 256,
                      .filters = 256,
                      .extent = {56, 56},
                      .op = strided});
  expect_no_spills({.dtype = e4m3,
                    .images = 64,
                    .channels = 256,
                    .filters = 256,
                    .extent = {56, 56},
                    .op = strided});
}

TEST_F(ConvSm90, ProloguesWithoutSpills) {
  const SomeConfigs wide(conv_sm90_engine(),
                         [](const Config& config) { return config.knob("tile_n") == 128; });
  Convolution convolution{.images = 64,
                          .channels = 128,
                          .filters = 128,
                          .extent = {28, 28},
                          .op = {.padding = {1, 1}},
                          .fused = true,
                          .worked_on = true};
  expect_compiles(wide, convolution.graph(), {"sm_90a"}, true);
  convolution.window = {1, 1};
  convolution.op = {};
  expect_compiles(wide, convolution.graph(), {"sm_90a"}, true);
}

TEST_F(ConvSm90, OddChannelsWithoutSpills) {
  for (const bool backward : {false, true})
    expect_no_spills({.backward = backward,
                      .images = 16,
                      .channels = 67,
                      .filters = 65,
                      .extent = {28, 28},
                      .op = {.padding = {1, 1}},
                      .worked_on = true});
}

// No engine with element-wise loads.
TEST(ConvSm90Plans, AcceptsOddChannels) {
  const std::vector<std::string> expected = {"cuda.conv_sm90"};
  for (const bool backward : {false, true}) {
    Convolution convolution{.backward = backward,
                            .images = 16,
                            .channels = 65,
                            .filters = 67,
                            .extent = {55, 55},
                            .op = {.padding = {1, 1}, .stride = {2, 2}}};
    EXPECT_EQ(engines_on_h200(convolution.graph()), expected);
    convolution.channels = convolution.filters = 128;
    convolution.left_out = 3;
    EXPECT_EQ(engines_on_h200(convolution.graph()), expected);
  }
}

// Windows that reach outside, partial tiles, K that does not fill its K-blocks.
TEST_F(GpuConvSm90, Forward) {
  expect_right({.extent = {9, 10}, .op = {.padding = {1, 1}}, .fused = true});
  expect_right({.dtype = f16,
                .channels = 72,
                .filters = 40,
                .extent = {9, 9},
                .op = {.padding = {0, 1}, .stride = {2, 2}}});
  expect_right({.channels = 24,
                .filters = 24,
                .extent = {7, 12},
                .window = {3, 2},
                .op = {.padding = {2, 1},
                       .post_padding = Dims{0, 2},
                       .stride = {1, 3},
                       .dilation = {2, 1},
                       .mode = ConvMode::convolution}});
}

TEST_F(GpuConvSm90, EveryConfiguration) {
  expect_right({.filters = 40, .op = {.padding = {1, 1}}}, true);
}

TEST_F(GpuConvSm90, Pointwise) {
  expect_right({.channels = 40, .extent = {7, 7}, .window = {1, 1}, .fused = true});
  expect_right({.extent = {9, 9}, .window = {1, 1}, .op = {.stride = {2, 2}}});
}

TEST_F(GpuConvSm90, Patches) {
  expect_right({.channels = 4,
                .extent = {21, 34},
                .window = {5, 8},
                .op = {.stride = {5, 8}},
                .fused = true});
}

TEST_F(GpuConvSm90, Backward) {
  expect_right({.backward = true, .extent = {9, 10}, .op = {.padding = {1, 1}}, .fused = true});
  expect_right({.dtype = f16,
                .backward = true,
                .channels = 72,
                .filters = 40,
                .extent = {9, 8},
                .op = {.padding = {1, 0}, .stride = {2, 2}}});
  expect_right({.backward = true, .extent = {8, 9}, .window = {1, 1}, .op = {.stride = {2, 2}}});
  expect_right({.backward = true,
                .extent = {7, 12},
                .window = {3, 2},
                .op = {.padding = {2, 1}, .stride = {1, 3}, .dilation = {2, 1}}});
}

TEST_F(GpuConvSm90, OtherTypes) {
  for (const DType dtype : {f32, DType::i8, e4m3})
    for (const bool backward : {false, true})
      expect_right({.dtype = dtype,
                    .backward = backward,
                    .channels = 48,
                    .filters = 32,
                    .extent = {6, 7},
                    .op = {.padding = {1, 1}, .stride = {1, 2}}});
  // More pixels than a warpgroup has rows, few columns: split K.
  expect_right({.dtype = e4m3, .channels = 144, .filters = 64, .extent = {12, 13}});
}

TEST_F(GpuConvSm90, OtherRanks) {
  for (const bool backward : {false, true}) {
    expect_right({.backward = backward,
                  .extent = {30},
                  .window = {5},
                  .op = {.padding = {2}, .stride = {2}}});
    expect_right({.backward = backward,
                  .channels = 32,
                  .extent = {5, 4, 6},
                  .window = {3, 3, 3},
                  .op = {.padding = {1, 1, 1}, .stride = {2, 1, 1}}});
  }
}

TEST_F(GpuConvSm90, Groups) {
  for (const bool backward : {false, true})
    expect_right({.backward = backward,
                  .channels = 128,
                  .filters = 192,
                  .groups = 2,
                  .extent = {6, 7},
                  .op = {.padding = {1, 1}}});
  expect_right({.dtype = f32,
                .backward = true,
                .channels = 32,
                .filters = 64,
                .groups = 2,
                .extent = {6, 7},
                .op = {.padding = {1, 1}}});
}

// Operands are repacked first, results have contiguous pixels.
TEST_F(GpuConvSm90, RowMajor) {
  for (const bool backward : {false, true}) {
    expect_right({.backward = backward,
                  .channels = 40,
                  .extent = {8, 8},
                  .op = {.padding = {1, 1}},
                  .layout = row_major,
                  .fused = true});
    expect_right({.backward = backward,
                  .channels = 20,
                  .extent = {7, 7},
                  .op = {.stride = {2, 2}},
                  .layout = row_major});
    expect_right({.dtype = f32,
                  .backward = backward,
                  .extent = {6, 6},
                  .op = {.padding = {1, 1}},
                  .layout = row_major});
  }
}

// Strides that are not multiples of 16 bytes: operands are repacked first.
TEST_F(GpuConvSm90, OddChannels) {
  const ConvAttributes padded{.padding = {1, 1}}, strided{.padding = {1, 1}, .stride = {2, 2}};
  for (const bool backward : {false, true}) {
    expect_right({.backward = backward,
                  .channels = 67,
                  .filters = 65,
                  .extent = {9, 10},
                  .op = padded,
                  .fused = true});
    expect_right({.backward = backward, .channels = 68, .filters = 35, .op = strided});
    for (const ConvAttributes& op : {padded, strided})
      expect_right({.dtype = f32,
                    .backward = backward,
                    .channels = 33,
                    .filters = 35,
                    .extent = {7, 6},
                    .op = op,
                    .fused = true});
    expect_right({.backward = backward, .channels = 67, .filters = 35, .window = {1, 1}});
    expect_right({.backward = backward,
                  .channels = 1,
                  .filters = 1,
                  .extent = {5, 4, 6},
                  .window = {3, 3, 3},
                  .op = {.padding = {1, 1, 1}}});
  }
  expect_right({.dtype = e4m3, .channels = 40, .filters = 72, .op = padded});
}

TEST_F(GpuConvSm90, OddChannelsInEveryConfiguration) {
  expect_right({.channels = 66, .filters = 40, .op = {.padding = {1, 1}}}, true);
}

// Slices of images with more channels: other strides and offsets.
TEST_F(GpuConvSm90, SlicesOfChannels) {
  const ConvAttributes padded{.padding = {1, 1}};
  for (const bool backward : {false, true})
    for (const std::int64_t left_out : {3, 4}) {
      expect_right({.backward = backward, .op = padded, .left_out = left_out});
      expect_right({.backward = backward,
                    .channels = 128,
                    .filters = 64,
                    .groups = 2,
                    .op = padded,
                    .fused = true,
                    .left_out = left_out});
      expect_right({.backward = backward,
                    .images = 1,
                    .extent = {1, 1},
                    .window = {1, 1},
                    .left_out = left_out});
    }
}

TEST_F(GpuConvSm90, AlphaAndBeta) {
  Graph graph;
  const Value x = graph.input("x", {2, 64, 6, 6}, bf16, channels_last),
              w = graph.input("w", {64, 64, 3, 3}, bf16, channels_last),
              z = graph.input("z", {2, 64, 6, 6}, bf16, channels_last);
  const ConvAttributes op{.padding = {1, 1}, .alpha = 0.5, .beta = -2.0};
  graph.output("y", relu(graph.conv(x, w, op, {}, z)), {.dtype = bf16, .layout = channels_last});
  expect_agrees(conv_sm90_engine(), graph);
}

// Pointers that are not multiples of 16 bytes, which TMA does not support.
TEST_F(GpuConvSm90, AnyPointer) {
  for (const bool backward : {false, true}) {
    const Convolution convolution{
        .backward = backward, .extent = {5, 6}, .op = {.padding = {1, 1}}};
    expect_agrees(convolution.graph(), "cuda.conv_sm90", {.offset = 4});
  }
}

}  // namespace
}  // namespace ashlar::cuda
