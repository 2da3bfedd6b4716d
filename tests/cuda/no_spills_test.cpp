// All configurations of the tensor-core engines for their main problems compile for Hopper without
// spills and with overlapping wgmma. Needs no GPU. By default a sample, here and in the tests of
// each engine; with ASHLAR_TEST_LONG all.
#include <gtest/gtest.h>

#include <cstdlib>

#include "api/backends.hpp"
#include "cuda/engines/engines.hpp"
#include "cuda/jit/kernel_image.hpp"
#include "cuda/jit/nvrtc.hpp"
#include "engine_compiles.hpp"
#include "gemm_graphs.hpp"

namespace ashlar::cuda {
namespace {

class NoSpills : public testing::Test {
 protected:
  void SetUp() override {
    if (!nvrtc().is_open) GTEST_SKIP() << nvrtc().reason;
  }

  // All configurations of the regions that the engine supports, or one of graph number problems_ %
  // period: the configuration follows the graph's number, so that many kinds are covered over the
  // graphs.
  void expect_no_spills(const CudaEngine& engine, const Graph& graph, std::size_t period,
                        const CompileOptions& options = {}) {
    const std::size_t number = problems_++;
    if (!is_long() && number % period != 0) return;
    SCOPED_TRACE(testing::Message() << "problem " << number << " of the test");
    const DeviceProps device = Device::named("h200").props();
    const auto outline = build_plan(graph, device, options, nullptr, false);
    bool is_taken = false;
    for (const PlanData::Step& step : outline->steps) {
      const Support support = engine.supports(step.region, device);
      if (support.is_other_operation()) continue;
      ASSERT_TRUE(bool(support)) << step.region.to_text(outline->lowered.graph) << ": "
                                 << support.reason();
      is_taken = true;
      std::vector<Config> configs = engine.configs(step.region, device);
      ASSERT_FALSE(configs.empty());
      if (!is_long()) configs = {configs[number * 7 % configs.size()]};
      for (const Config& config : configs)
        for (const LaunchDesign& launch :
             engine.design(outline->lowered.graph, step.region, config, device).launches)
          check(launch, step.region.to_text(outline->lowered.graph) + " " + config.to_text());
    }
    EXPECT_TRUE(is_taken) << engine.id();
  }

 private:
  static void check(const LaunchDesign& launch, const std::string& what) {
    static KernelImages images{FileCache("")};
    const auto image = images.get(launch.source, "sm_90a");
    const Resources resources = resources_of(image->log);
    EXPECT_GT(resources.registers, 0) << image->log;
    EXPECT_EQ(resources.spilled_bytes, 0) << launch.source.name << " of " << what << "\n"
                                          << image->log;
    // Serialised wgmma; ignored setmaxnreg.
    for (const char* loss : {"are serialized", "'setmaxnreg' ignored"})
      EXPECT_EQ(image->log.find(loss), std::string::npos)
          << launch.source.name << " of " << what << "\n"
          << image->log;
  }

  std::size_t problems_ = 0;
};

const ConvAttributes kStrided{.padding = {1, 1}, .stride = {2, 2}};

TEST_F(NoSpills, GemmSm90) {
  for (const DType dtype : {bf16, f16, f32, e4m3, i8}) {
    const DType result = dtype == i8 ? i32 : dtype == e4m3 ? bf16 : dtype;
    for (const bool fused : {true, false}) {
      if (fused && result == i32) continue;
      expect_no_spills(gemm_sm90_engine(),
                       MatrixGraph{.dtype = dtype, .result = result, .fused = fused}.graph(), 9);
    }
  }
  for (const bool turned : {false, true})
    expect_no_spills(
        gemm_sm90_engine(),
        MatrixGraph{.batches = 4, .a_turned = turned, .b_turned = false, .result = f32}.graph(), 9);
  expect_no_spills(gemm_sm90_engine(),
                   MatrixGraph{.rows = 256, .columns = 1024, .depth = 16384}.graph(), 9);
  for (const DType stored : {i8, DType::i4, e4m3})
    expect_no_spills(gemm_sm90_engine(), MatrixGraph{.weights = stored}.graph(), 9);
}

TEST_F(NoSpills, GemmSm80) {
  for (const DType dtype : {bf16, f32, f64, i8, e4m3})
    expect_no_spills(gemm_sm80_engine(),
                     MatrixGraph{.dtype = dtype,
                                 .rows = 1000,
                                 .a_turned = true,
                                 .b_turned = false,
                                 .result = dtype == i8 ? i32 : dtype}
                         .graph(),
                     9);
  expect_no_spills(gemm_sm80_engine(), MatrixGraph{.dtype = f32, .result = f32}.graph(), 9,
                   {.allow_tf32 = false});
  expect_no_spills(gemm_sm80_engine(), MatrixGraph{.fused = true}.graph(), 9);
  expect_no_spills(gemm_sm80_engine(), MatrixGraph{.dtype = i8, .result = i32}.graph(), 9);
}

TEST_F(NoSpills, GemmSkinny) {
  // Weights that are not contiguous along K need more accumulator registers than there are:
  // refused.
  const auto is_refused = [](std::int64_t rows, std::optional<DType> weights, bool turned) {
    return !turned && ((rows == 16 && weights == DType::i4) || (rows == 32 && weights == e4m3));
  };
  for (const std::int64_t rows : {1, 4, 8, 16, 32})
    for (const auto& weights :
         {std::optional<DType>(), std::optional(e4m3), std::optional(DType::i4)})
      for (const bool turned : {true, false})
        if (!is_refused(rows, weights, turned))
          expect_no_spills(gemm_skinny_engine(),
                           MatrixGraph{.rows = rows,
                                       .columns = 8192,
                                       .depth = 8192,
                                       .b_turned = turned,
                                       .weights = weights}
                               .graph(),
                           17);
}

TEST_F(NoSpills, MoeSm90) {
  for (const MoeMode mode : {MoeMode::gather, MoeMode::none, MoeMode::scatter})
    for (const DType dtype : {bf16, e4m3, f32})
      expect_no_spills(moe_sm90_engine(), ExpertsGraph{.mode = mode, .dtype = dtype}.graph(), 9);
}

TEST_F(NoSpills, MoeGradients) {
  for (const MoeMode mode : {MoeMode::gather, MoeMode::none, MoeMode::scatter})
    for (const DType dtype : {bf16, e4m3, f32}) {
      const Graph graph = ExpertsGradientGraph{.mode = mode, .dtype = dtype}.graph();
      expect_no_spills(moe_wgrad_sm90_engine(), graph, 9);
      expect_no_spills(moe_sm90_engine(), graph, 9);
    }
}

TEST_F(NoSpills, ConvSm90) {
  for (const ConvDirection direction : {ConvDirection::forward, ConvDirection::data}) {
    const auto expect = [&](ConvGraph conv) {
      conv.direction = direction;
      expect_no_spills(conv_sm90_engine(), conv.graph(), 11);
    };
    for (const DType dtype : {bf16, f32, e4m3})
      for (const std::int64_t channels : {64, 512}) {
        expect({.dtype = dtype, .channels = channels, .filters = channels, .fused = true});
        expect({.dtype = dtype, .channels = channels, .filters = channels, .op = kStrided});
      }
    expect({.window = {1, 1}, .op = {}});
    expect({.channels = 1024, .filters = 1024, .groups = 32, .extent = {7, 7}});
    expect({.channels = 512, .filters = 512, .groups = 32, .extent = {14, 14}});
    expect({.layout = row_major});
    expect({.op = {.padding = {2, 2}, .dilation = {2, 2}}});
    expect({.images = 4,
            .channels = 64,
            .filters = 64,
            .extent = {32, 32, 32},
            .window = {3, 3, 3},
            .op = {.padding = {1, 1, 1}}});
  }
  expect_no_spills(conv_sm90_engine(),
                   ConvGraph{.channels = 3,
                             .filters = 768,
                             .extent = {224, 224},
                             .window = {16, 16},
                             .op = {.stride = {16, 16}}}
                       .graph(),
                   11);
}

TEST_F(NoSpills, ConvWgradSm90) {
  const auto expect = [&](ConvGraph conv, const CompileOptions& options = {}) {
    conv.direction = ConvDirection::filter;
    expect_no_spills(conv_wgrad_sm90_engine(), conv.graph(), 9, options);
  };
  for (const DType dtype : {bf16, f32}) {
    for (const std::int64_t channels : {64, 512}) {
      expect({.dtype = dtype, .channels = channels, .filters = channels});
      expect({.dtype = dtype, .channels = channels, .filters = channels, .op = kStrided});
    }
    expect({.dtype = dtype, .window = {1, 1}, .op = {}});
    expect({.dtype = dtype, .extent = {7, 7}});
    expect({.dtype = dtype, .layout = row_major});
    expect({.dtype = dtype,
            .images = 4,
            .channels = 64,
            .filters = 64,
            .extent = {32, 32, 32},
            .window = {3, 3, 3},
            .op = {.padding = {1, 1, 1}}});
  }
  expect({.dtype = f32}, {.allow_tf32 = false});
  expect({.channels = 1024, .filters = 1024, .groups = 32, .extent = {7, 7}});
}

TEST_F(NoSpills, ConvSm80) {
  for (const ConvDirection direction : kConvDirections) {
    for (const DType dtype : {bf16, f32})
      for (const Layout& layout : {Layout(channels_last), Layout(row_major)})
        expect_no_spills(
            conv_sm80_engine(),
            ConvGraph{.dtype = dtype, .direction = direction, .layout = layout}.graph(), 11);
    if (direction == ConvDirection::forward)  // element-wise loads
      expect_no_spills(
          conv_sm80_engine(),
          ConvGraph{.dtype = i8, .direction = direction, .channels = 67, .filters = 67}.graph(),
          11);
    expect_no_spills(conv_sm80_engine(), ConvGraph{.dtype = f32, .direction = direction}.graph(),
                     11, {.allow_tf32 = false});
    expect_no_spills(
        conv_sm80_engine(),
        ConvGraph{.direction = direction, .channels = 168, .filters = 168, .groups = 7}.graph(),
        11);
  }
}

TEST_F(NoSpills, ConvDirect) {
  for (const ConvDirection direction : kConvDirections)
    for (const DType dtype : {bf16, f32}) {
      const auto expect = [&](ConvGraph conv, const CompileOptions& options = {}) {
        conv.direction = direction;
        conv.dtype = dtype;
        expect_no_spills(conv_direct_engine(), conv.graph(), 17, options);
      };
      for (const Layout& layout : {Layout(channels_last), Layout(row_major)})
        expect({.channels = 3,
                .filters = 64,
                .extent = {224, 224},
                .window = {7, 7},
                .op = {.padding = {3, 3}, .stride = {2, 2}},
                .layout = layout});
      for (const std::int64_t filters : {8, 32, 64})
        expect({.channels = 3, .filters = filters, .extent = {224, 224}});
      for (const std::int64_t width : {4, 8, 16, 24, 32}) {
        expect({.channels = 8 * width, .filters = 8 * width, .groups = 8});
        expect({.channels = 8 * width, .filters = 8 * width, .groups = 8, .op = kStrided});
      }
      expect({.channels = 16, .filters = 16, .extent = {112, 112}});
      expect({.channels = 32,
              .filters = 8,
              .extent = {56, 56},
              .window = {5, 5},
              .op = {.padding = {2, 2}}});
      if (dtype == f32)
        expect({.channels = 256, .filters = 256, .groups = 32}, {.allow_tf32 = false});
    }
}

}  // namespace
}  // namespace ashlar::cuda
