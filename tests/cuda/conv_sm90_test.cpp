// Convolutions of the sm_90a core: kernels of the main shapes compile without spills, and small
// ones agree with the oracle.
#include "cuda/engines/engines.hpp"
#include "engine_agrees.hpp"
#include "engine_compiles.hpp"
#include "gpu_check.hpp"
#include "some_configs.hpp"

namespace ashlar::cuda {
namespace {

struct Convolution {
  DType dtype = bf16;
  bool backward = false;
  std::int64_t images = 2, channels = 64, filters = 64, groups = 1;
  Dims extent = {8, 8}, window = {3, 3};
  ConvAttributes op = {};
  Layout layout = channels_last;
  bool fused = false;  // bias, residual, relu
  // max(2 x scale - bias, bias): 2 x, a number per channel, and zero becomes something else.
  bool worked_on = false;
  bool beside = false;  // an image of the same form is added before that

  Graph graph() const {
    Graph graph;
    Dims x = {images, channels}, y = {images, filters}, w = {filters, channels / groups};
    for (int axis = 0; axis < extent.rank(); ++axis) {
      const auto of = [&](const Dims& values, std::int64_t absent) {
        return values.empty() ? absent : values[axis];
      };
      const std::int64_t before = of(op.padding, 0);
      const std::int64_t after = op.post_padding ? (*op.post_padding)[axis] : before;
      x.push_back(extent[axis]);
      w.push_back(window[axis]);
      y.push_back((extent[axis] + before + after - of(op.dilation, 1) * (window[axis] - 1) - 1) /
                      of(op.stride, 1) +
                  1);
    }
    Value first = graph.input("x", backward ? y : x, dtype, layout);
    const Value second = graph.input("w", w, dtype, layout);
    if (beside)
      first =
          graph.pointwise(PointwiseMode::add,
                          std::array{first, graph.input("other", backward ? y : x, dtype, layout)},
                          {}, {.dtype = dtype, .layout = layout});
    if (worked_on) {
      Dims channel = backward ? y : x;
      for (int axis = 0; axis < channel.rank(); ++axis) channel[axis] = axis == 1 ? channel[1] : 1;
      const Value bias = graph.input("shift", channel, f32, layout);
      first = graph.pointwise(PointwiseMode::mul,
                              std::array{first, graph.input("scale", channel, f32, layout)}, {},
                              {.dtype = f32, .layout = layout});
      first = graph.pointwise(PointwiseMode::sub, std::array{first, bias}, {},
                              {.dtype = f32, .layout = layout});
      first = graph.pointwise(PointwiseMode::max, std::array{first, bias}, {},
                              {.dtype = dtype, .layout = layout});
    }
    Value result = backward ? graph.conv_backward_data(first, second, op, {.dims = x})
                            : graph.conv(first, second, op);
    if (fused) {
      Dims bias = backward ? x : y;
      const Value residual = graph.input("residual", bias, dtype, layout);
      for (int axis = 0; axis < bias.rank(); ++axis) bias[axis] = axis == 1 ? bias[1] : 1;
      result = relu(result + graph.input("bias", bias, f32, layout) + residual);
    }
    graph.output("y", result, {.dtype = dtype == DType::i8 ? f32 : dtype, .layout = layout});
    return graph;
  }
};

class ConvSm90 : public testing::Test {
 protected:
  void SetUp() override {
    if (!nvrtc().is_open) GTEST_SKIP() << nvrtc().reason;
  }
  static void expect_no_spills(const Convolution& convolution) {
    expect_compiles(conv_sm90_engine(), convolution.graph(), {"sm_90a"});
  }
};

// Those with the most sums per thread, which leave the fewest registers.
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

// Short depth and wide results: these leave by the copy engine, filters stay.
TEST_F(ConvSm90, BoxesWithoutSpills) {
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
      expect_compiles(boxes, convolution.graph(), {"sm_90a"}, true);
    }
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

class GpuConvSm90 : public testing::Test {
 protected:
  void SetUp() override {
    if (device_count() == 0) GTEST_SKIP() << driver().reason;
    if (Device::named("cuda:0").props().compute_capability != 90) GTEST_SKIP() << "no sm_90a";
  }
  static void expect_right(const Convolution& convolution, bool all_configs = false) {
    expect_agrees(conv_sm90_engine(), convolution.graph(), all_configs);
  }
};

// Windows that reach outside, tiles that reach past the end, depth that does not fill its blocks.
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

// Pixels that are loaded once for all taps.
TEST_F(GpuConvSm90, Windows) {
  const SomeConfigs engine(conv_sm90_engine(),
                           [](const Config& config) { return config.knob("windows") != 0; });
  for (const bool backward : {false, true}) {
    const ConvAttributes padded{.padding = {1, 1}}, strided{.padding = {1, 1}, .stride = {2, 2}};
    expect_agrees(engine, Convolution{.backward = backward,
                                      .images = 3,
                                      .channels = 80,
                                      .filters = 72,
                                      .extent = {9, 10},
                                      .op = padded,
                                      .fused = true}
                              .graph());
    if (backward)
      expect_agrees(engine, Convolution{.backward = true, .images = 6, .op = strided}.graph());
    expect_agrees(engine, Convolution{.dtype = f32,
                                      .backward = backward,
                                      .channels = 32,
                                      .extent = {7, 12},
                                      .window = {3, 2},
                                      .op = {.padding = {2, 0}, .dilation = {2, 1}}}
                              .graph());
  }
}

// In three dimensions plane by plane.
TEST_F(GpuConvSm90, WindowsInPlanes) {
  const SomeConfigs engine(conv_sm90_engine(),
                           [](const Config& config) { return config.knob("windows") != 0; });
  for (const bool backward : {false, true}) {
    expect_agrees(engine, Convolution{.backward = backward,
                                      .channels = 32,
                                      .filters = 32,
                                      .extent = {5, 6, 7},
                                      .window = {3, 3, 3},
                                      .op = {.padding = {1, 1, 1}},
                                      .fused = true}
                              .graph());
    expect_agrees(engine, Convolution{.backward = backward,
                                      .channels = 72,
                                      .extent = {6, 5, 4},
                                      .window = {2, 3, 1},
                                      .op = {.padding = {2, 0, 0}, .dilation = {3, 2, 1}}}
                              .graph());
  }
  expect_agrees(engine, Convolution{.backward = true,
                                    .images = 3,
                                    .extent = {7, 8, 9},
                                    .window = {3, 3, 3},
                                    .op = {.padding = {1, 1, 1}, .stride = {2, 2, 2}}}
                            .graph());
}

TEST_F(GpuConvSm90, Pointwise) {
  expect_right({.channels = 40, .extent = {7, 7}, .window = {1, 1}, .fused = true});
  expect_right({.extent = {9, 9}, .window = {1, 1}, .op = {.stride = {2, 2}}});
}

// Results that leave by the copy engine, with few multiprocessors, so that blocks have many tiles:
// boxes are written again and again, and filters that stay serve all of a block's tiles.
TEST_F(GpuConvSm90, Boxes) {
  DeviceProps device = Device::named("cuda:0").props();
  device.compute_units = 6;
  const auto expect_boxes = [&](bool stay, const Convolution& convolution) {
    const SomeConfigs engine(conv_sm90_engine(), [=](const Config& config) {
      return config.knob("boxes") > 0 && (config.knob("windows") != 0) == stay;
    });
    const bool is_all = stay || convolution.window[0] > 1;
    expect_agrees(engine, convolution.graph(), is_all, 3, support::Fill::plain, device);
  };
  for (const bool stay : {false, true}) {
    expect_boxes(stay, {.images = 5,
                        .channels = 72,
                        .filters = 264,
                        .extent = {9, 13},
                        .window = {1, 1},
                        .fused = true});
    expect_boxes(stay, {.backward = true,
                        .images = 9,
                        .channels = 136,
                        .filters = 72,
                        .extent = {8, 9},
                        .window = {1, 1}});
    expect_boxes(stay, {.dtype = f32,
                        .images = 7,
                        .channels = 40,
                        .filters = 72,
                        .extent = {9, 9},
                        .window = {1, 1},
                        .op = {.stride = {2, 2}},
                        .fused = true});
  }
  // Several taps, groups whose columns fill tiles.
  expect_boxes(false, {.dtype = f16, .extent = {9, 10}, .op = {.padding = {1, 1}}, .fused = true});
  expect_boxes(false,
               {.channels = 128, .filters = 128, .groups = 2, .extent = {6, 7}, .window = {1, 1}});
}

// Phases of which only one has products, and blocks with many tiles of each.
TEST_F(GpuConvSm90, PhasesInTurns) {
  DeviceProps device = Device::named("cuda:0").props();
  device.compute_units = 6;
  const Convolution convolution{.backward = true,
                                .images = 9,
                                .channels = 136,
                                .filters = 72,
                                .extent = {12, 12},
                                .window = {1, 1},
                                .op = {.stride = {2, 2}}};
  expect_agrees(conv_sm90_engine(), convolution.graph(), true, 3, support::Fill::plain, device);
}

// Several results of which one leaves by the copy engine, in a type of its own.
TEST_F(GpuConvSm90, BoxesBesideOtherResults) {
  Graph graph;
  const Value x = graph.input("x", {3, 64, 7, 9}, bf16, channels_last),
              w = graph.input("w", {128, 64, 1, 1}, bf16, channels_last),
              z = graph.input("z", {3, 128, 7, 9}, bf16, channels_last);
  const Value sum = graph.conv(x, w, {}) + z;
  graph.output("sum", sum, {.dtype = f32, .layout = channels_last});
  graph.output("y", relu(sum), {.dtype = f16, .layout = channels_last});
  const SomeConfigs engine(conv_sm90_engine(),
                           [](const Config& config) { return config.knob("boxes") > 0; });
  expect_agrees(engine, graph, true);
  // One whose elementary functions are as good as its type.
  Graph short_result;
  const Value a = short_result.input("x", {3, 64, 7, 9}, bf16, channels_last),
              b = short_result.input("w", {64, 64, 1, 1}, bf16, channels_last);
  short_result.output("y", gelu_tanh(short_result.conv(a, b, {})) * 2.0,
                      {.dtype = bf16, .layout = channels_last});
  expect_agrees(engine, short_result);
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

// Groups of 8 to 64 channels side by side; the last bundle has fewer. More bundles and tiles than
// warpgroups, images that end within a tile.
TEST_F(GpuConvSm90, NarrowGroups) {
  const ConvAttributes padded{.padding = {1, 1}};
  for (const bool backward : {false, true}) {
    expect_right({.backward = backward,
                  .images = 7,
                  .channels = 160,
                  .filters = 160,
                  .groups = 5,
                  .extent = {7, 7},
                  .op = padded,
                  .fused = true},
                 true);
    expect_right({.dtype = f16,
                  .backward = backward,
                  .images = 3,
                  .channels = 96,
                  .filters = 96,
                  .groups = 6,
                  .extent = {9, 6},
                  .window = {3, 2},
                  .op = {.padding = {2, 1},
                         .dilation = {2, 1},
                         .mode = backward ? ConvMode::cross_correlation : ConvMode::convolution}});
    expect_right({.dtype = f32,
                  .backward = backward,
                  .channels = 40,
                  .filters = 80,
                  .groups = 5,
                  .extent = {6, 5},
                  .op = padded});
    expect_right({.backward = backward,
                  .channels = 128,
                  .filters = 64,
                  .groups = 2,
                  .extent = {6, 7},
                  .op = padded});
  }
}

// Few channels and filters without groups: rows of 32, 64 and 128 bytes, filled up with zeros.
TEST_F(GpuConvSm90, FewChannels) {
  const SomeConfigs bundles(conv_sm90_engine(),
                            [](const Config& config) { return config.knob("windows") == 2; });
  const ConvAttributes padded{.padding = {1, 1}};
  for (const bool backward : {false, true})
    for (const Convolution& one :
         {Convolution{.channels = 16, .filters = 24, .op = padded, .fused = true},
          Convolution{.channels = 40, .filters = 8, .extent = {9, 6}, .op = padded},
          Convolution{.dtype = f32, .channels = 12, .filters = 20, .op = padded},
          Convolution{.extent = {9, 7}, .window = {1, 1}, .fused = true},
          Convolution{.channels = 64,
          .filters = 16,
          .extent = {21},
          .window = {5},
          .op = {.padding = {2}}}}) {
      Convolution convolution = one;
      convolution.backward = backward;
      convolution.images = 5;
      expect_agrees(bundles, convolution.graph(), convolution.channels == 16 && !backward);
    }
  expect_agrees(bundles, Convolution{.images = 5, .filters = 1, .window = {1, 1}}.graph());
}

// Operands are brought into order first, results leave with contiguous pixels.
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

// A program before the product: zeros outside of the image stay zeros.
TEST_F(GpuConvSm90, Prologues) {
  const Convolution padded{.images = 3,
                           .channels = 80,
                           .filters = 72,
                           .extent = {9, 10},
                           .op = {.padding = {1, 1}},
                           .fused = true,
                           .worked_on = true};
  const SomeConfigs windows(conv_sm90_engine(),
                            [](const Config& config) { return config.knob("windows") != 0; });
  const SomeConfigs taps(conv_sm90_engine(),
                         [](const Config& config) { return config.knob("windows") == 0; });
  for (const bool backward : {false, true}) {
    Convolution c = padded;
    c.backward = backward;
    expect_agrees(windows, c.graph());
    expect_agrees(taps, c.graph());
    c.beside = true;
    expect_agrees(windows, c.graph());
    c.op.stride = {2, 2};
    c.op.dilation = {2, 1};
    expect_right(c);
  }
  expect_right({.channels = 24, .extent = {9, 9}, .op = {.padding = {1, 1}}, .worked_on = true});
  expect_right({.dtype = f32,
                .channels = 40,
                .extent = {7, 9},
                .window = {3, 2},
                .op = {.padding = {2, 0}, .post_padding = Dims{0, 1}},
                .worked_on = true});
}
TEST_F(GpuConvSm90, ProloguesInEveryConfiguration) {
  expect_right({.filters = 40, .op = {.padding = {1, 1}}, .worked_on = true}, true);
}
TEST_F(GpuConvSm90, ProloguesOfOtherForms) {
  for (const bool beside : {false, true}) {
    expect_right({.channels = 72,
                  .extent = {7, 7},
                  .window = {1, 1},
                  .fused = true,
                  .worked_on = true,
                  .beside = beside});
    expect_right({.extent = {9, 9},
                  .window = {1, 1},
                  .op = {.padding = {1, 1}, .stride = {2, 2}},
                  .worked_on = true,
                  .beside = beside});
  }
  expect_right({.extent = {30}, .window = {5}, .op = {.padding = {2}}, .worked_on = true});
  expect_right({.channels = 32,
                .extent = {5, 4, 6},
                .window = {3, 3, 3},
                .op = {.padding = {1, 1, 1}, .stride = {2, 1, 1}},
                .worked_on = true});
  expect_right({.channels = 128,
                .filters = 192,
                .groups = 2,
                .extent = {6, 7},
                .op = {.padding = {1, 1}},
                .worked_on = true});
  // Pixels that lie together are brought into order by a launch, which runs the program.
  expect_right({.channels = 40,
                .op = {.padding = {1, 1}},
                .layout = row_major,
                .fused = true,
                .worked_on = true});
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

// Pointers that are no multiples of 16 bytes, which the copy engine does not take.
TEST_F(GpuConvSm90, AnyPointer) {
  for (const bool backward : {false, true}) {
    const Convolution convolution{
        .backward = backward, .extent = {5, 6}, .op = {.padding = {1, 1}}};
    expect_agrees(convolution.graph(), "cuda.conv_sm90", {.offset = 4});
  }
}

}  // namespace
}  // namespace ashlar::cuda
