// Split-K within clusters and stream-K of the sm_90a core: kernels of the shapes that use them
// compile without spills, and small ones agree with the oracle.
#include "api/backends.hpp"
#include "cuda/engines/engines.hpp"
#include "cuda/engines/sm90/gemm_tile.hpp"
#include "cuda/known_gpus.hpp"
#include "engine_agrees.hpp"
#include "engine_compiles.hpp"
#include "some_configs.hpp"

namespace ashlar::cuda {
namespace {

bool is_split(const Config& config) { return config.knob("splits") > 1; }
// Stream-K.
bool is_streamed(const Config& config) { return tile_of(config).streams; }

struct SplitGemm {
  std::int64_t batches = 1, rows = 200, columns = 136, depth = 512;
  DType factors = bf16, result = bf16;
  bool transpose_a = false, transpose_b = true;
  bool fused = false, has_lengths = false;

  Graph graph() const {
    Graph graph;
    const auto matrix = [&](const char* name, std::int64_t high, std::int64_t wide, bool turned) {
      if (!turned) return graph.input(name, {batches, high, wide}, factors);
      return graph.transpose(graph.input(name, {batches, wide, high}, factors), {0, 2, 1});
    };
    const Value a = matrix("a", rows, depth, transpose_a),
                b = matrix("b", depth, columns, transpose_b);
    std::vector<Operand<Matmul>> operands = {{Matmul::a, a}, {Matmul::b, b}};
    Matmul op;
    if (has_lengths) {
      op.padding_value = 2.5;
      operands.push_back({Matmul::m_override, graph.input("rows", {batches, 1, 1}, i32)});
      operands.push_back({Matmul::n_override, graph.input("columns", {batches, 1, 1}, i32)});
      operands.push_back({Matmul::k_override, graph.input("depths", {batches, 1, 1}, i32)});
    }
    Value c = graph.apply(op, operands, {Matmul::c});
    if (fused) {
      const Value residual = graph.input("residual", {batches, rows, columns}, result);
      c = relu(c + graph.input("bias", {1, 1, columns}, f32)) + residual;
    }
    graph.output("c", c, {.dtype = result});
    return graph;
  }
};

struct SplitConvolution {
  bool backward = false;
  DType dtype = bf16;
  std::int64_t channels = 128, filters = 72, groups = 1;
  std::int64_t images = 2, height = 5, width = 7;
  Layout layout = channels_last;

  Graph graph() const {
    const ConvAttributes op{.padding = {1, 1}};
    Graph graph;
    const Dims x = {images, channels, height, width}, y = {images, filters, height, width};
    const Value from = graph.input("from", backward ? y : x, dtype, layout),
                w = graph.input("w", {filters, channels / groups, 3, 3}, dtype, layout);
    const Dims& to = backward ? x : y;
    Value result =
        backward ? graph.conv_backward_data(from, w, op, {.dims = x}) : graph.conv(from, w, op);
    const DType stored = dtype == DType::i8 ? f32 : dtype;
    const Value residual = graph.input("residual", to, stored, layout);
    result = relu(result + graph.input("bias", {1, to[1], 1, 1}, f32, layout) + residual);
    graph.output("result", result, {.dtype = stored, .layout = layout});
    return graph;
  }
};

using Wanted = SomeConfigs::Wanted;

int count_configs(const CudaEngine& engine, const Graph& graph, const DeviceProps& device,
                  const Wanted& is_wanted) {
  const LoweredGraph lowered = lower(graph, true);
  const std::vector<FusionLimits> limits(lowered.graph.nodes().size());
  int count = 0;
  for (const Region& region : partition(lowered, limits)) {
    if (!engine.supports(region, device)) continue;
    const std::vector<Config> configs = engine.configs(region, device);
    count += static_cast<int>(std::count_if(configs.begin(), configs.end(), is_wanted));
  }
  return count;
}

class SplitSm90 : public testing::Test {
 protected:
  void SetUp() override {
    if (!nvrtc().is_open) GTEST_SKIP() << nvrtc().reason;
  }
  // All configurations that the cost model prefers to whole tiles.
  static void expect_no_spills(const CudaEngine& engine, const Graph& graph,
                               const Wanted& is_wanted = is_split, std::size_t step = 1) {
    EXPECT_GT(count_configs(engine, graph, known_gpus().front(), is_wanted), 0);
    expect_compiles(SomeConfigs(engine, is_wanted), graph, {"sm_90a"}, true, 0, step);
  }
};

// A tail wave after full waves: both epilogues are in the kernel.
TEST_F(SplitSm90, TailWave) {
  expect_no_spills(
      conv_sm90_engine(),
      SplitConvolution{.channels = 512, .filters = 512, .images = 256, .height = 7, .width = 7}
          .graph());
}
// Few rows and large K.
TEST_F(SplitSm90, FewTiles) {
  for (const DType factors : {bf16, e4m3})
    expect_no_spills(
        gemm_sm90_engine(),
        SplitGemm{.rows = 256, .columns = 4096, .depth = 14336, .factors = factors, .fused = true}
            .graph());
}
// A hundred tiles of 128 x 256, or a few more than fill a wave; L2 holds the operands.
TEST_F(SplitSm90, StreamK) {
  for (const DType factors : {bf16, f32, e4m3})
    expect_no_spills(gemm_sm90_engine(),
                     SplitGemm{.rows = 1280,
                               .columns = 2560,
                               .depth = 6144 * 8 / bit_width(factors),
                               .factors = factors,
                               .fused = true}
                         .graph(),
                     is_streamed, 9);
  expect_no_spills(
      gemm_sm90_engine(),
      SplitGemm{.rows = 1536, .columns = 3072, .depth = 2560, .transpose_a = true}.graph(),
      is_streamed, 9);
  // Operands computed by producer warps.
  expect_no_spills(gemm_sm90_engine(),
                   SplitGemm{.rows = 4093, .columns = 4091, .depth = 4095, .fused = true}.graph(),
                   is_streamed);
  for (const bool backward : {false, true})
    expect_no_spills(conv_sm90_engine(),
                     SplitConvolution{.backward = backward,
                                      .channels = 512,
                                      .filters = 512,
                                      .images = 16,
                                      .height = 33,
                                      .width = 33}
                         .graph(),
                     is_streamed, 9);
}
// Where waves are full, or K is too short to split, there is nothing to gain.
TEST_F(SplitSm90, NotWhereWavesAreFull) {
  const DeviceProps& h200 = known_gpus().front();
  const auto count = [&](const SplitGemm& product) {
    return count_configs(gemm_sm90_engine(), product.graph(), h200, is_split);
  };
  EXPECT_EQ(count({.rows = 128 * 132, .columns = 2048, .depth = 128}), 0);
  EXPECT_GT(count({.rows = 128, .columns = 4096, .depth = 8192}), 0);
  // The domain of cuda.gemm_skinny.
  EXPECT_EQ(count({.rows = 16, .columns = 4096, .depth = 8192}), 0);
}

// CTAs at different k find shared operand tiles in L2, or they are read from DRAM again and again.
TEST_F(SplitSm90, StreamKWhereL2HoldsTheOperands) {
  const DeviceProps& h200 = known_gpus().front();
  const auto count = [&](const SplitGemm& product, const Wanted& is_wanted = is_streamed) {
    return count_configs(gemm_sm90_engine(), product.graph(), h200, is_wanted);
  };
  EXPECT_GT(count({.rows = 1280, .columns = 2560, .depth = 3072}), 0);
  EXPECT_EQ(count({.rows = 1280, .columns = 2560, .depth = 16384}), 0);
  EXPECT_GT(count({.rows = 1280, .columns = 2560, .depth = 5120, .factors = e4m3}), 0);
  // Rows of a single tile stream through; columns stay in L2, and clusters multicast them.
  const SplitGemm tall{.rows = 17424, .columns = 256, .depth = 18432};
  const auto is_alone = [](const Config& config) {
    return is_streamed(config) && (config.knob("cluster") == 1 || config.knob("tile_n") < 256);
  };
  EXPECT_GT(count(tall), 0);
  EXPECT_EQ(count(tall, is_alone), 0);
  // Few tiles: split within clusters.
  EXPECT_EQ(count({.rows = 128, .columns = 512, .depth = 8192}), 0);
  // Producers that compute operands are slower than memory.
  EXPECT_GT(count({.rows = 4093, .columns = 4091, .depth = 4095}), 0);
}

class GpuSplitSm90 : public testing::Test {
 protected:
  void SetUp() override {
    if (device_count() == 0) GTEST_SKIP() << driver().reason;
    if (Device::named("cuda:0").props().compute_capability != 90) GTEST_SKIP() << "no sm_90a";
  }
  // A device with so few SMs that there are several waves, and so slow ones that splitting always
  // pays.
  static DeviceProps small_device(int units) {
    DeviceProps device = Device::named("cuda:0").props();
    device.compute_units = units;
    device.flops_f16 /= 1e6;
    device.flops_f32 /= 1e6;
    return device;
  }
  static void expect_right(const CudaEngine& engine, const Graph& graph, int units,
                           const Wanted& is_wanted) {
    const DeviceProps device = small_device(units);
    EXPECT_GT(count_configs(engine, graph, device, is_wanted), 0) << units;
    expect_agrees(SomeConfigs(engine, is_wanted), graph, true, 3, support::Fill::plain, device);
  }
  static void expect_right(const SplitGemm& product, int units,
                           const Wanted& is_wanted = is_split) {
    expect_right(gemm_sm90_engine(), product.graph(), units, is_wanted);
  }
  static void expect_right(const SplitConvolution& convolution, int units,
                           const Wanted& is_wanted = is_split) {
    expect_right(conv_sm90_engine(), convolution.graph(), units, is_wanted);
  }
  // Run after run, whatever the order of CTAs.
  static void expect_repeats(const Graph& graph, int units, const Wanted& is_wanted) {
    const DeviceProps device = small_device(units);
    const auto outline = build_plan(graph, device, {}, nullptr, false);
    ASSERT_EQ(outline->steps.size(), 1);
    const SomeConfigs engine(gemm_sm90_engine(), is_wanted);
    const std::vector<Config> configs = engine.configs(outline->steps[0].region, device);
    ASSERT_FALSE(configs.empty());
    const std::vector<SavedChoice> choice = {{std::string(engine.id()), configs[0].knobs}};
    const auto plan = build_plan(graph, device, {}, &choice, true);
    EXPECT_TRUE(plan->notes.deterministic);
    support::Problem problem(graph, 3);
    const TensorId result = graph.find_tensor("c");
    const auto run = [&] {
      EXPECT_EQ(problem.run(*plan), "");
      const auto* bytes = reinterpret_cast<const char*>(problem.memory().data(result));
      return std::string(bytes, static_cast<std::size_t>(byte_size(graph.tensor(result))));
    };
    const std::string first = run();
    for (int i = 0; i < 4; ++i) EXPECT_TRUE(run() == first);
  }
};

// All tiles are split, with 8 SMs; the last one after some waves with 2.
TEST_F(GpuSplitSm90, EveryTile) {
  for (const int units : {2, 8}) expect_right(SplitGemm{.fused = true}, units);
}
TEST_F(GpuSplitSm90, ManySplits) {
  expect_right(SplitGemm{.rows = 70, .columns = 130, .depth = 2100, .fused = true}, 8);
}
TEST_F(GpuSplitSm90, IsBitwiseReproducible) {
  expect_repeats(SplitGemm{.rows = 136, .columns = 72, .depth = 1040}.graph(), 8, is_split);
}
TEST_F(GpuSplitSm90, StreamKIsBitwiseReproducible) {
  expect_repeats(SplitGemm{.rows = 330, .columns = 200, .depth = 1100}.graph(), 7, is_streamed);
}
TEST_F(GpuSplitSm90, BatchesAndTransposes) {
  for (const bool transpose_a : {false, true})
    for (const bool transpose_b : {false, true})
      expect_right(SplitGemm{.batches = 3,
                             .rows = 72,
                             .columns = 136,
                             .depth = 520,
                             .transpose_a = transpose_a,
                             .transpose_b = transpose_b},
                   4);
}
TEST_F(GpuSplitSm90, OddSizes) {
  expect_right(SplitGemm{.rows = 131, .columns = 67, .depth = 515, .fused = true}, 4);
}
TEST_F(GpuSplitSm90, Lengths) {
  expect_right(SplitGemm{.batches = 3, .rows = 130, .columns = 72, .has_lengths = true}, 4);
}
TEST_F(GpuSplitSm90, Types) {
  for (const DType dtype : {f16, f32, DType::i8, e4m3})
    expect_right(
        SplitGemm{.rows = 136, .columns = 72, .depth = 1040, .factors = dtype, .result = f32}, 4);
}

// Three ranges for two tiles and the like, and waves of whole tiles before them.
TEST_F(GpuSplitSm90, StreamKTiles) {
  for (const int units : {3, 7, 12})
    expect_right(SplitGemm{.rows = 330, .columns = 200, .depth = 1100, .fused = true}, units,
                 is_streamed);
}
// Ranges shorter than tiles: some have only the middle of one.
TEST_F(GpuSplitSm90, StreamKTilesOfManySplits) {
  expect_right(SplitGemm{.rows = 70, .columns = 130, .depth = 5000, .fused = true}, 11,
               is_streamed);
}
TEST_F(GpuSplitSm90, StreamKTypes) {
  for (const DType dtype : {f16, f32, DType::i8, e4m3})
    expect_right(
        SplitGemm{.rows = 136, .columns = 200, .depth = 2608, .factors = dtype, .result = f32}, 3,
        is_streamed);
}
// Rows that TMA does not support: producer warps compute the operands.
TEST_F(GpuSplitSm90, StreamKOddSizes) {
  expect_right(SplitGemm{.rows = 331, .columns = 203, .depth = 1101, .fused = true}, 5,
               is_streamed);
}
TEST_F(GpuSplitSm90, StreamKBatchesTransposesAndLengths) {
  for (const bool transpose : {false, true})
    expect_right(SplitGemm{.batches = 3,
                           .rows = 130,
                           .columns = 136,
                           .depth = 520,
                           .transpose_a = transpose,
                           .transpose_b = !transpose,
                           .has_lengths = transpose},
                 4, is_streamed);
}
TEST_F(GpuSplitSm90, StreamKConvolutions) {
  for (const bool backward : {false, true})
    expect_right(SplitConvolution{.backward = backward}, 3, is_streamed);
  expect_right(SplitConvolution{.groups = 2}, 3, is_streamed);
}

TEST_F(GpuSplitSm90, Convolutions) {
  for (const bool backward : {false, true}) expect_right(SplitConvolution{.backward = backward}, 4);
  expect_right(SplitConvolution{.groups = 2}, 4);
  expect_right(SplitConvolution{.layout = row_major}, 4);
  expect_right(SplitConvolution{.dtype = e4m3, .channels = 256}, 4);
}

}  // namespace
}  // namespace ashlar::cuda
