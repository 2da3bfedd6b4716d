// Further strategies of cuda.conv_sm90 for pixels and results, against the oracle: halo windows,
// TMA stores, packed groups, computed pixels.
#include "conv_sm90_graphs.hpp"
#include "some_configs.hpp"

namespace ashlar::cuda {
namespace {

// Halo windows: pixels are loaded once for all taps.
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

// TMA stores with few SMs, so that a CTA processes many tiles: staging buffers are reused, and
// resident filters serve all tiles of a CTA.
TEST_F(GpuConvSm90, TmaStores) {
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
  // A long mainloop: large tiles, residual prefetched into staging buffers.
  for (const DType dtype : {bf16, f32})
    expect_boxes(false, {.dtype = dtype,
                         .images = 2,
                         .channels = 136,
                         .filters = 264,
                         .extent = {9, 7},
                         .fused = true});
  // Several taps, groups whose columns fill tiles.
  expect_boxes(false, {.dtype = f16, .extent = {9, 10}, .op = {.padding = {1, 1}}, .fused = true});
  expect_boxes(false,
               {.channels = 128, .filters = 128, .groups = 2, .extent = {6, 7}, .window = {1, 1}});
}

// Residual loaded through the pipeline after a tile's K-blocks: CTAs with many tiles, cooperative
// and ping-pong, alone and in clusters; partial tiles.
TEST_F(GpuConvSm90, BroughtThroughThePipeline) {
  DeviceProps device = Device::named("cuda:0").props();
  device.compute_units = 2;
  const SomeConfigs engine(conv_sm90_engine(), [](const Config& config) {
    return config.knob("boxes") == 2 && config.knob("windows") == 0;
  });
  const Convolution convolution{
      .images = 3, .channels = 72, .filters = 264, .extent = {14, 13}, .fused = true};
  expect_agrees(engine, convolution.graph(), true, 3, support::Fill::plain, device);
}

// Phases of which only one has taps, and CTAs with many tiles of each.
TEST_F(GpuConvSm90, InterleavedPhases) {
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

// Several results, one of which is stored by TMA, with a type of its own.
TEST_F(GpuConvSm90, TmaStoresNextToOtherResults) {
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
  // One whose elementary functions are as accurate as its type.
  Graph short_result;
  const Value a = short_result.input("x", {3, 64, 7, 9}, bf16, channels_last),
              b = short_result.input("w", {64, 64, 1, 1}, bf16, channels_last);
  short_result.output("y", gelu_tanh(short_result.conv(a, b, {})) * 2.0,
                      {.dtype = bf16, .layout = channels_last});
  expect_agrees(engine, short_result);
}

// Packed groups of 8 to 64 channels; the last pack has fewer. More packs and tiles than warpgroups,
// images that end within a tile.
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

// Few channels and filters without groups: rows of 32, 64 and 128 bytes, zero-padded.
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

// A prologue: zeros outside of the image stay zeros.
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
    c.adds_image = true;
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
  for (const bool adds_image : {false, true}) {
    expect_right({.channels = 72,
                  .extent = {7, 7},
                  .window = {1, 1},
                  .fused = true,
                  .worked_on = true,
                  .adds_image = adds_image});
    expect_right({.extent = {9, 9},
                  .window = {1, 1},
                  .op = {.padding = {1, 1}, .stride = {2, 2}},
                  .worked_on = true,
                  .adds_image = adds_image});
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
  // Contiguous pixels are repacked by a launch, which runs the program.
  expect_right({.channels = 40,
                .op = {.padding = {1, 1}},
                .layout = row_major,
                .fused = true,
                .worked_on = true});
  // So are channels that are not multiples of 16 bytes.
  for (const DType dtype : {bf16, f32})
    for (const bool backward : {false, true})
      expect_right({.dtype = dtype,
                    .backward = backward,
                    .channels = 37,
                    .filters = 35,
                    .extent = {7, 6},
                    .op = {.padding = {1, 1}},
                    .fused = true,
                    .worked_on = true,
                    .adds_image = true,
                    .left_out = 1});
}

}  // namespace
}  // namespace ashlar::cuda
