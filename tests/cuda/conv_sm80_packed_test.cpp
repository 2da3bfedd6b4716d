// Convolution on tensor cores by mma.sync with operands repacked by a pre-pass: NCHW images,
// filters and filter gradients of any layout, channels that are no multiple of 16 bytes.
#include <functional>
#include <memory>
#include <string>

#include "api/backends.hpp"
#include "cuda/engines/engines.hpp"
#include "engine_agrees.hpp"
#include "engine_compiles.hpp"
#include "gemm_graphs.hpp"
#include "some_configs.hpp"

namespace ashlar::cuda {
namespace {

const ConvAttributes kStrided{.padding = {1, 1}, .stride = {2, 2}};
const ConvAttributes kDilated{.padding = {2, 2}, .dilation = {2, 2}};

// A filter gradient in PyTorch's default layout.
ConvGraph wgrad() { return {.direction = ConvDirection::filter, .layout = row_major}; }

class Sm80Packed : public testing::Test {
 protected:
  // The first choice on an A100.
  static const PlanData::Step& choose(const Graph& graph) {
    static std::shared_ptr<const PlanData> plan;
    plan = build_plan(graph, known_gpu("sm_80"), {}, nullptr, false);
    EXPECT_EQ(plan->steps.size(), 1u);
    EXPECT_EQ(plan->steps.at(0).choice.engine->id(), "cuda.conv_sm80");
    return plan->steps.at(0);
  }
  static void expect_packed(const ConvGraph& conv) {
    const PlanData::Step& step = choose(conv.graph());
    EXPECT_TRUE(is_packed(step.choice.config)) << step.choice.config.to_text();
  }
};

TEST_F(Sm80Packed, FilterGradientsOfAnyLayout) {
  ConvGraph conv = wgrad();
  expect_packed(conv);
  conv.result_layout = channels_last;
  expect_packed(conv);
  // Pixels of dy would be loaded in vectors of 8 bytes, and of 2.
  for (const std::int64_t extent : {14, 7}) {
    conv.extent = {extent, extent};
    expect_packed(conv);
  }
  conv.window = {1, 1};
  conv.op = {};
  expect_packed(conv);
}

TEST_F(Sm80Packed, FilterGradientsWithGroupsAndVolumes) {
  ConvGraph groups = wgrad();
  groups.channels = groups.filters = 512;
  groups.groups = 4;
  expect_packed(groups);
  ConvGraph volume = wgrad();
  volume.images = 4;
  volume.channels = volume.filters = 64;
  volume.extent = {16, 28, 28};
  volume.window = {3, 3, 3};
  volume.op = {.padding = {1, 1, 1}};
  expect_packed(volume);
}

TEST_F(Sm80Packed, ChannelsNotMultipleOf16Bytes) {
  for (const ConvDirection direction : kConvDirections)
    for (const Layout& layout : {row_major, channels_last})
      expect_packed({.direction = direction, .channels = 253, .filters = 251, .layout = layout});
}

TEST_F(Sm80Packed, NothingToRepack) {
  for (const ConvDirection direction : kConvDirections) {
    const Graph graph =
        ConvGraph{.dtype = f32, .direction = direction, .filters = 0, .layout = row_major}.graph();
    EXPECT_EQ(build_plan(graph, known_gpu("sm_80"), {}, nullptr, false)->steps.size(), 1u);
  }
}

// n follows the layout of x whatever the layout of the gradient: nothing needs repacking.
TEST_F(Sm80Packed, OnlyTheResultHasAnotherOrder) {
  ConvGraph conv{.direction = ConvDirection::filter};
  conv.result_layout = row_major;
  EXPECT_FALSE(is_packed(choose(conv.graph()).choice.config));
}

class Sm80PackedKernels : public testing::Test {
 protected:
  void SetUp() override {
    if (!nvrtc().is_open) GTEST_SKIP() << nvrtc().reason;
  }
};

TEST_F(Sm80PackedKernels, FilterGradientsCompileWithoutSpills) {
  ConvGraph conv = wgrad();
  for (const char* architecture : {"sm_80", "sm_86", "sm_89", "sm_90a", "sm_120"}) {
    conv.channels = conv.channels == 256 ? 250 : 256;
    conv.dtype = architecture == std::string("sm_89") ? f32 : bf16;
    expect_compiles(SomeConfigs(conv_sm80_engine(), is_packed), conv.graph(), {architecture},
                    is_long());
  }
}

class GpuSm80Packed : public testing::Test {
 protected:
  void SetUp() override {
    if (device_count() == 0) GTEST_SKIP() << driver().reason;
  }
  static void expect_right(const ConvGraph& conv, bool all_configs = false,
                           const std::function<bool(const Config&)>& wanted = is_packed) {
    expect_agrees(conv_sm80_engine(), conv.graph(), all_configs, 3, support::Fill::plain,
                  Device::named("cuda:0").props(), wanted);
  }
  static ConvGraph small(ConvDirection direction, DType dtype) {
    return {.dtype = dtype,
            .direction = direction,
            .images = 2,
            .channels = 16,
            .filters = 24,
            .extent = {7, 6},
            .layout = row_major};
  }
  static ConvGraph small_gradient(DType dtype) { return small(ConvDirection::filter, dtype); }
};

TEST_F(GpuSm80Packed, FilterGradients) {
  for (const DType dtype : {bf16, f32}) {
    ConvGraph conv = small_gradient(dtype);
    expect_right(conv, true);
    conv.result_layout = channels_last;
    expect_right(conv);
  }
  // Contiguous filters: the GEMM is transposed.
  ConvGraph conv = small_gradient(f16);
  conv.result_layout = Layout(Dims{1, 24, 24 * 16 * 3, 24 * 16});
  expect_right(conv);
}

TEST_F(GpuSm80Packed, FilterGradientsOfOddChannels) {
  for (const Layout& layout : {row_major, channels_last}) {
    ConvGraph conv = small_gradient(f16);
    conv.channels = 13;
    conv.filters = 11;
    conv.result_layout = layout;
    expect_right(conv, true);
  }
}

// Split-K partials are stored by channels, whatever the layout of the gradient.
TEST_F(GpuSm80Packed, FilterGradientsWithSplitK) {
  for (const std::int64_t channels : {13, 16}) {
    ConvGraph conv = small_gradient(bf16);
    conv.images = 8;
    conv.channels = channels;
    expect_right(conv, false, [](const Config& config) {
      return is_packed(config) && config.knob("split") > 1;
    });
  }
}

TEST_F(GpuSm80Packed, FilterGradientsOfOtherWindows) {
  for (const ConvAttributes& op : {kStrided, kDilated}) {
    ConvGraph conv = small_gradient(bf16);
    conv.op = op;
    expect_right(conv);
  }
  ConvGraph one_tap = small_gradient(bf16);
  one_tap.extent = {7, 7};
  one_tap.window = {1, 1};
  one_tap.op = {};
  expect_right(one_tap);
  ConvGraph groups = small_gradient(f16);
  groups.channels = groups.filters = 32;
  groups.groups = 2;
  expect_right(groups);
  ConvGraph volume = small_gradient(bf16);
  volume.extent = {3, 5, 4};
  volume.window = {3, 2, 3};
  volume.op = {.padding = {1, 0, 1}, .mode = ConvMode::convolution};
  expect_right(volume);
}

// K is padded with zeros, whatever the scratch memory held before.
TEST_F(GpuSm80Packed, OddChannelsForwardAndBackward) {
  for (const ConvDirection direction : {ConvDirection::forward, ConvDirection::data})
    for (const Layout& layout : {row_major, channels_last}) {
      ConvGraph conv = small(direction, bf16);
      conv.channels = 13;
      conv.filters = 11;
      conv.layout = layout;
      conv.op = kStrided;
      conv.fused = direction == ConvDirection::forward;
      expect_right(conv);
    }
}

// Split f32: padding zeros along K do not count as terms.
TEST_F(GpuSm80Packed, F32SplitIntoTf32) {
  for (const ConvDirection direction : kConvDirections) {
    ConvGraph conv = small(direction, f32);
    conv.channels = 5;
    conv.filters = 6;
    const Graph graph = conv.graph();
    const auto plan = build_plan(graph, Device::named("cuda:0").props(),
                                 {.allow_tf32 = false, .engine = "cuda.conv_sm80"}, nullptr, true);
    const Config& config = plan->steps.at(0).choice.config;
    EXPECT_TRUE(is_packed(config)) << config.to_text();
    EXPECT_EQ(config.knob("products"), 6);
    support::Problem problem(graph, 5);
    EXPECT_EQ(problem.run(*plan), "");
  }
}

}  // namespace
}  // namespace ashlar::cuda
