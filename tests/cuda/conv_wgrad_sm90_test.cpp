// Wgrad on Hopper: kernels of the main shapes compile without spills, and small ones agree with the
// oracle.
#include <algorithm>

#include "api/backends.hpp"
#include "cuda/engines/engines.hpp"
#include "engine_agrees.hpp"
#include "engine_compiles.hpp"
#include "odd_channels.hpp"

namespace ashlar::cuda {
namespace {

struct FilterProblem {
  DType dtype = bf16;
  std::int64_t images = 1, channels = 64, filters = 64, groups = 1;
  Dims extent = {}, window = {}, stride = {}, dilation = {}, padding = {};
  ConvMode mode = ConvMode::cross_correlation;
  Layout layout = channels_last;
  std::int64_t left_out = 0;  // channels of x before and after the slice
};

Graph wgrad(const FilterProblem& problem, bool fused = false) {
  Graph graph;
  const int spatial = problem.extent.rank();
  Dims x = {problem.images, problem.channels}, dy = {problem.images, problem.filters},
       dw = {problem.filters, problem.channels / problem.groups};
  ConvAttributes op{.padding = problem.padding,
                    .stride = problem.stride,
                    .dilation = problem.dilation,
                    .mode = problem.mode};
  for (int axis = 0; axis < spatial; ++axis) {
    const auto value = [&](const Dims& values, std::int64_t absent) {
      return values.rank() == 0 ? absent : values[axis];
    };
    const std::int64_t window = problem.window[axis];
    x.push_back(problem.extent[axis]);
    dw.push_back(window);
    dy.push_back((problem.extent[axis] + 2 * value(problem.padding, 0) -
                  value(problem.dilation, 1) * (window - 1) - 1) /
                     value(problem.stride, 1) +
                 1);
  }
  if (fused) op.alpha = 0.5;
  Value result = graph.conv_backward_filter(
      input_channels(graph, x, problem.left_out, problem.dtype, problem.layout),
      graph.input("dy", dy, problem.dtype, problem.layout), op,
      {.dims = dw, .layout = channels_last});
  if (fused) result = result + graph.input("decay", dw, f32, channels_last);
  graph.output("dw", result, {.layout = problem.layout});
  return graph;
}

class ConvWgradSm90 : public testing::Test {
 protected:
  void SetUp() override {
    if (!nvrtc().is_open) GTEST_SKIP() << nvrtc().reason;
  }
};

TEST_F(ConvWgradSm90, Compiles) {
  const FilterProblem three = {
      .images = 256, .extent = {56, 56}, .window = {3, 3}, .padding = {1, 1}};
  expect_compiles(conv_wgrad_sm90_engine(), wgrad(three), {"sm_90a"});
  FilterProblem f32_three = three;
  f32_three.dtype = f32;
  expect_compiles(conv_wgrad_sm90_engine(), wgrad(f32_three), {"sm_90a"});
  for (FilterProblem odd : {three, f32_three}) {
    odd.channels = odd.filters = 67;
    expect_compiles(conv_wgrad_sm90_engine(), wgrad(odd), {"sm_90a"}, true, 0, 4);
  }
  const FilterProblem one = {
      .images = 256, .channels = 512, .filters = 128, .extent = {28, 28}, .window = {1, 1}};
  expect_compiles(conv_wgrad_sm90_engine(), wgrad(one), {"sm_90a"});
}

TEST(ConvWgradSm90Plans, AcceptsOddChannels) {
  FilterProblem problem = {.images = 16,
                           .channels = 65,
                           .filters = 67,
                           .extent = {55, 55},
                           .window = {3, 3},
                           .stride = {2, 2},
                           .padding = {1, 1}};
  const std::vector<std::string> expected = {"cuda.conv_wgrad_sm90"};
  EXPECT_EQ(engines_on_h200(wgrad(problem)), expected);
  problem.layout = row_major;
  EXPECT_EQ(engines_on_h200(wgrad(problem)), expected);
}

class GpuConvWgradSm90 : public testing::Test {
 protected:
  void SetUp() override {
    if (device_count() == 0) GTEST_SKIP() << driver().reason;
    if (Device::named("cuda:0").props().compute_capability != 90) GTEST_SKIP() << "no sm_90";
  }
  static void check(const FilterProblem& problem, bool fused = false) {
    expect_agrees(conv_wgrad_sm90_engine(), wgrad(problem, fused));
  }
  // With the first configuration that has these knobs.
  static void check_with(const FilterProblem& problem,
                         std::vector<std::pair<std::string, std::int64_t>> knobs) {
    const Graph graph = wgrad(problem);
    const DeviceProps device = Device::named("cuda:0").props();
    const auto outline = build_plan(graph, device, {}, nullptr, false);
    ASSERT_EQ(outline->steps.size(), 1u);
    for (const Config& config :
         conv_wgrad_sm90_engine().configs(outline->steps[0].region, device)) {
      if (!std::all_of(knobs.begin(), knobs.end(),
                       [&](const auto& knob) { return config.knob(knob.first) == knob.second; }))
        continue;
      const std::vector<SavedChoice> own = {
          {std::string(conv_wgrad_sm90_engine().id()), config.knobs}};
      const auto plan = build_plan(graph, device, {.guard = true}, &own, true);
      support::Problem inputs(graph, 3);
      EXPECT_EQ(inputs.run(*plan), "") << config.to_text();
      return;
    }
    ADD_FAILURE() << "no configuration has these knobs";
  }
};

// All taps of a tile from the pixels of one stage; plain and split into bf16 parts.
TEST_F(GpuConvWgradSm90, ThreeByThree) {
  FilterProblem problem = {.images = 2, .extent = {7, 7}, .window = {3, 3}, .padding = {1, 1}};
  check_with(problem, {{"tap_rows", 3}, {"taps_across", 3}, {"segments", 2}});
  check_with(problem, {{"tap_rows", 1}, {"taps_across", 3}});
  check_with(problem, {{"tap_rows", 3}, {"taps_across", 1}});
  problem.dtype = f32;
  check_with(problem, {{"tap_rows", 3}, {"taps_across", 3}, {"parts", 2}});
  check_with(problem, {{"taps_across", 3}, {"parts", 3}});
  check({.dtype = f16, .images = 1, .extent = {5, 9}, .window = {3, 3}}, true);
}

// tf32 with transposed dy: runs that are rows, and halves of rows; boxes and taps of warpgroups.
TEST_F(GpuConvWgradSm90, TransposedTf32) {
  const FilterProblem seven = {
      .dtype = f32, .images = 3, .extent = {7, 7}, .window = {3, 3}, .padding = {1, 1}};
  check_with(seven, {{"parts", 1}, {"tap_rows", 3}, {"taps_across", 3}, {"rows", 8}});
  check_with(seven, {{"parts", 1}, {"tap_rows", 3}, {"taps_across", 3}, {"rows", 4}});
  check_with(seven, {{"parts", 1}, {"tap_rows", 1}, {"taps_across", 3}});
  check_with(seven, {{"parts", 1}, {"tap_rows", 2}, {"taps_across", 2}});
  check_with({.dtype = f32,
              .images = 2,
              .channels = 136,
              .filters = 72,
              .extent = {10, 28},
              .window = {2, 3},
              .dilation = {3, 1},
              .padding = {1, 0},
              .mode = ConvMode::convolution},
             {{"parts", 1}, {"taps_across", 3}});
  check_with({.dtype = f32,
              .channels = 256,
              .filters = 192,
              .extent = {9, 8},
              .window = {1, 1},
              .stride = {2, 1}},
             {{"parts", 1}});
  check_with({.dtype = f32,
              .images = 3,
              .channels = 128,
              .filters = 192,
              .extent = {8, 12},
              .window = {1, 1}},
             {{"parts", 1}, {"tap_rows", 1}, {"taps_across", 1}});
  check_with({.dtype = f32, .extent = {4, 6, 14}, .window = {3, 3, 3}, .padding = {1, 1, 1}},
             {{"parts", 1}, {"tap_rows", 3}, {"taps_across", 3}});
}

// Stream-K: CTAs with parts of several tiles, and tiles that have fewer partials than others.
TEST_F(GpuConvWgradSm90, StreamKSplits) {
  const std::int64_t units = Device::named("cuda:0").props().compute_units;
  FilterProblem problem = {.images = 25,
                           .channels = 128,
                           .filters = 192,
                           .extent = {3, 4},
                           .window = {3, 3},
                           .padding = {1, 1}};
  check_with(problem, {{"blocks", units}});
  problem.dtype = f32;
  for (const int parts : {1, 2}) check_with(problem, {{"blocks", units}, {"parts", parts}});
}

TEST_F(GpuConvWgradSm90, Rows) {
  check({.images = 3, .channels = 128, .filters = 192, .extent = {5, 5}, .window = {1, 1}});
  check({.dtype = f32, .channels = 128, .extent = {11, 9}, .window = {1, 1}, .stride = {2, 2}});
}

TEST_F(GpuConvWgradSm90, StridedChannels) {
  for (const DType dtype : {bf16, f32})
    for (const std::int64_t extent : {7, 6})
      check({.dtype = dtype,
             .images = 2,
             .channels = 72,
             .extent = {extent, extent},
             .window = {3, 3},
             .padding = {1, 1},
             .layout = row_major});
}

// Strides and offsets that are not multiples of 16 bytes.
TEST_F(GpuConvWgradSm90, OddChannels) {
  for (const DType dtype : {bf16, f32})
    for (const Layout& layout : {channels_last, row_major}) {
      FilterProblem problem = {.dtype = dtype,
                               .images = 2,
                               .channels = 67,
                               .filters = 35,
                               .extent = {7, 6},
                               .window = {3, 3},
                               .padding = {1, 1},
                               .layout = layout};
      check(problem, true);
      problem.stride = {2, 2};
      check(problem);
      problem.channels = 64;
      for (const std::int64_t left_out : {2, 3}) {
        problem.left_out = left_out;
        check(problem);
      }
    }
  check({.images = 2, .channels = 67, .filters = 35, .extent = {5, 5}, .window = {1, 1}});
  check({.channels = 96,
         .filters = 48,
         .groups = 3,
         .extent = {4, 5, 4},
         .window = {3, 3, 3},
         .padding = {1, 1, 1},
         .left_out = 3});
}

// Groups packed into a box; the last box has fewer.
TEST_F(GpuConvWgradSm90, NarrowGroups) {
  for (const DType dtype : {bf16, f32})
    for (const std::int64_t width : {16, 24, 32})
      check({.dtype = dtype,
             .images = 2,
             .channels = 5 * width,
             .filters = 5 * width,
             .groups = 5,
             .extent = {7, 6},
             .window = {3, 3},
             .padding = {1, 1}},
            true);
  check({.channels = 96,
         .filters = 48,
         .groups = 3,
         .extent = {9, 8},
         .window = {3, 3},
         .stride = {2, 2},
         .padding = {1, 1}});
}

TEST_F(GpuConvWgradSm90, ManyKinds) {
  // Strided windows, dilation, other windows, groups, channels that do not fill a box, flipped
  // filters.
  check({.extent = {9, 8}, .window = {3, 3}, .stride = {2, 2}, .padding = {1, 1}});
  check({.extent = {9, 8}, .window = {3, 3}, .dilation = {2, 2}, .padding = {2, 2}});
  check({.extent = {6, 7}, .window = {5, 2}, .padding = {2, 0}});
  check({.channels = 160, .filters = 48, .groups = 2, .extent = {6, 4}, .window = {1, 3}});
  check({.extent = {6, 5}, .window = {2, 3}, .padding = {1, 1}, .mode = ConvMode::convolution});
  check({.extent = {37}, .window = {3}, .padding = {1}});
  check({.extent = {4, 5, 4}, .window = {3, 3, 3}, .stride = {2, 1, 1}, .padding = {1, 1, 1}});
}

}  // namespace
}  // namespace ashlar::cuda
