// Skinny GEMM: kernels of LLM decode shapes compile without spills, and small problems agree with
// the reference.
#include <cmath>
#include <limits>
#include <optional>

#include "api/backends.hpp"
#include "base/element.hpp"
#include "cuda/engines/engines.hpp"
#include "engine_agrees.hpp"
#include "engine_compiles.hpp"
#include "skinny_graphs.hpp"

namespace ashlar::cuda {
namespace {

TEST(GemmSkinnyPlans, NamesTheRefusedAccumulatorType) {
  Graph g;
  g.output("y", g.matmul(g.input("a", {8, 4096}, i8), g.input("b", {4096, 4096}, i8)));
  EXPECT_NE(explain(g, Device::named("h200")).find("cuda.gemm_skinny: refused: accumulates in i32"),
            std::string::npos);
}

class GemmSkinny : public testing::Test {
 protected:
  void SetUp() override {
    if (!nvrtc().is_open) GTEST_SKIP() << nvrtc().reason;
  }
};

// Fused block scales: every 4th configuration with and without limbs, with x repacked by the
// pre-pass or by each CTA.
TEST_F(GemmSkinny, ScalesOfBlocksWithoutSpills) {
  const DeviceProps h200 = Device::named("h200").props();
  for (const std::int64_t m : {8, 16, 32})
    for (const std::int64_t n : {28672, 4096})
      for (const auto& [digits, in_blocks] :
           {std::pair{0, false}, {0, true}, {1, false}, {1, true}}) {
        if (digits == 1 && in_blocks && m > 8) continue;  // no such candidates
        const SkinnyProblem problem{.m = m, .n = n, .k = 8192, .weights = i4, .block = 128};
        SCOPED_TRACE(testing::Message() << m << " rows of x, " << n << " of weights");
        const auto plan = build_plan(skinny_product(problem), h200, {}, nullptr, false);
        ASSERT_EQ(plan->steps.size(), 1);
        const Region& region = plan->steps[0].region;
        std::vector<Config> configs = gemm_skinny_engine().configs(region, h200);
        std::erase_if(configs, [digits = digits, in_blocks = in_blocks](const Config& c) {
          return c.knob("digits") != digits || (c.knob("helpers") > 1) != in_blocks;
        });
        ASSERT_FALSE(configs.empty());
        keep_every(4, configs);
        expect_compiles(gemm_skinny_engine(), plan->lowered.graph, region, configs, h200);
      }
}

TEST_F(GemmSkinny, WithoutSpills) {
  for (const DType weights : {bf16, e4m3, i4})
    for (const std::int64_t m : {1, 32})
      expect_compiles(gemm_skinny_engine(),
                      skinny_product({.m = m, .n = 8192, .k = 28672, .weights = weights}),
                      {kHopper}, true, 0, 4);
  for (const DType weights : {bf16, i4})
    expect_compiles(
        gemm_skinny_engine(),
        skinny_product({.m = 32, .n = 8192, .k = 8192, .weights = weights, .k_major = false}),
        {kHopper});
  expect_compiles(gemm_skinny_engine(),
                  skinny_product({.m = 8, .n = 4096, .k = 4096, .x = f32, .weights = f32}),
                  {"sm_80", "sm_120"});
}

// N, K and packets that do not fill their tiles.
TEST_F(GpuGemmSkinny, EveryTypeOfWeights) {
  struct Types {
    DType x, weights;
    bool k_major;
  };
  for (const Types& types : std::initializer_list<Types>{{bf16, bf16, true},
                                                         {bf16, bf16, false},
                                                         {bf16, e4m3, true},
                                                         {bf16, e4m3, false},
                                                         {bf16, i8, true},
                                                         {bf16, i4, true},
                                                         {bf16, u4, false},
                                                         {bf16, e2m1, true},
                                                         {bf16, e5m2, false},
                                                         {f16, f16, true},
                                                         {f16, e5m2, true},
                                                         {f16, i4, false},
                                                         {f32, f32, true},
                                                         {f32, f32, false},
                                                         {f32, i8, true}})
    expect_agrees(gemm_skinny_engine(), skinny_product({.m = 5,
                                                        .n = 96,
                                                        .k = 352,
                                                        .x = types.x,
                                                        .weights = types.weights,
                                                        .k_major = types.k_major,
                                                        .y = types.x}));
}

// Split-K over a cluster; little shared memory, so that x is loaded in phases; few SMs, so that
// CTAs process several units.
TEST_F(GpuGemmSkinny, ClustersPhasesAndPasses) {
  const DeviceProps whole = Device::named("cuda:0").props();
  DeviceProps with_little_memory = whole, small = whole;
  with_little_memory.shared_bytes = with_little_memory.l1_bytes = 72 << 10;
  small.compute_units = 2;
  const auto agrees = [](const SkinnyProblem& problem, const DeviceProps& device) {
    expect_agrees(gemm_skinny_engine(), skinny_product(problem), false, 3, support::Fill::plain,
                  device);
  };
  for (const DeviceProps& device : {whole, with_little_memory, small})
    agrees({.m = 17, .n = 200, .k = 1032}, device);
  agrees({.m = 4, .n = 80, .k = 256, .batches = 3}, small);
  agrees({.m = 4, .n = 200, .k = 256, .weights = i4, .block = 64}, small);
}

// TMA bulk loads: every layout, partial chunks and row tiles, more chunks than stages, and several
// units per CTA.
TEST_F(GpuGemmSkinny, TmaLoads) {
  const DeviceProps whole = Device::named("cuda:0").props();
  DeviceProps small = whole;
  small.compute_units = 2;
  const auto agrees = [](const SkinnyProblem& problem, const DeviceProps& device, bool all) {
    expect_agrees(gemm_skinny_engine(), skinny_product(problem), all, 3, support::Fill::plain,
                  device, [](const Config& config) { return config.knob("helpers") == 0; });
  };
  agrees({.m = 5, .n = 72, .k = 1056}, whole, true);
  agrees({.m = 17, .n = 208, .k = 1024, .weights = e4m3, .after = true}, small, true);
  agrees({.m = 32, .n = 96, .k = 1536, .weights = i4, .block = 128}, small, true);
  agrees({.m = 12, .n = 80, .k = 1152, .weights = i4, .block = 128}, small, false);
  agrees({.m = 3, .n = 40, .k = 1088, .weights = e4m3}, small, true);
  agrees({.m = 8, .n = 56, .k = 1152, .weights = i4, .batches = 1, .block = 128}, small, true);
  for (const std::int64_t m : {1, 8})
    for (const DType weights : {bf16, e4m3, i8, i4, u4, e2m1})
      agrees({.m = m, .n = 48, .k = 640, .weights = weights, .batches = m}, small, false);
  for (const auto& [weights, scale] : {std::pair{i4, f32}, {i4, bf16}, {e4m3, e8m0}})
    agrees({.m = 3, .n = 64, .k = 896, .weights = weights, .block = 128, .block_scale = scale},
           whole, false);
  agrees({.m = 2, .n = 80, .k = 512, .x = f16, .weights = e4m3, .y = f16}, whole, false);
}

// wgmma: 1 to 32 rows of x that do not fill its columns, partial row tiles and chunks, several
// units per CTA, clusters, two warpgroups that share a chunk.
TEST_F(GpuGemmSkinny, Warpgroups) {
  const DeviceProps whole = Device::named("cuda:0").props();
  if (whole.compute_capability != 90) GTEST_SKIP() << "wgmma is sm_90a's";
  DeviceProps small = whole;
  small.compute_units = 4;
  const auto agrees = [](const SkinnyProblem& problem, const DeviceProps& device, bool all,
                         support::Fill fill = support::Fill::plain) {
    SCOPED_TRACE(testing::Message() << problem.m << " " << to_string(problem.weights) << " "
                                    << problem.n << " " << problem.k);
    expect_agrees(gemm_skinny_engine(), skinny_product(problem), all, 3, fill, device,
                  [](const Config& config) { return config.knob("helpers") > 0; });
  };
  agrees({.m = 32, .n = 200, .k = 1536, .weights = i4, .block = 128}, small, true);
  agrees({.m = 17, .n = 328, .k = 1152, .weights = e4m3, .after = true}, small, true);
  agrees({.m = 5, .n = 72, .k = 1280, .weights = i4, .block = 256}, small, true);
  agrees({.m = 19, .n = 136, .k = 448}, small, true);
  // CTAs with fewer rows than their warps have room for.
  expect_agrees(gemm_skinny_engine(),
                skinny_product({.m = 7, .n = 340, .k = 768, .weights = e4m3, .after = true}), true,
                3, support::Fill::plain, small,
                [](const Config& config) { return config.knob("block_rows") > 0; });
  // Clusters of four.
  for (const auto& [m, weights] : {std::pair{20, i4}, {3, e4m3}})
    expect_agrees(gemm_skinny_engine(),
                  skinny_product({.m = m,
                                  .n = 136,
                                  .k = 2048,
                                  .weights = weights,
                                  .after = true,
                                  .block = weights == i4 ? 128 : 0}),
                  true, 3, support::Fill::plain, whole, [](const Config& config) {
                    return config.knob("helpers") > 0 && config.knob("split") == 4;
                  });
  // The whole GPU: one unit per CTA, or per cluster of two.
  agrees({.m = 20, .n = 136, .k = 1536, .weights = i4, .block = 128}, whole, true);
  agrees({.m = 10, .n = 136, .k = 2048, .weights = e4m3}, whole, true);
  for (const std::int64_t m : {1, 8, 12, 20})
    for (const DType weights : {e4m3, i8, i4, u4, e2m1})
      agrees({.m = m, .n = 80, .k = 768, .weights = weights}, whole, false);
  for (const auto& [weights, scale] : {std::pair{i4, bf16}, {u4, bf16}, {e4m3, e8m0}})
    agrees({.m = 24, .n = 192, .k = 1024, .weights = weights, .block = 128, .block_scale = scale},
           whole, false);
  agrees({.m = 9, .n = 80, .k = 512, .x = f16, .weights = e4m3, .y = f16}, whole, false);
  // The emulated GPU lacks the e4m3 conversion, and this kernel does not mark NaN of e4m3 itself.
  for (const auto& [m, weights] : {std::pair{11, is_emulated_gpu() ? i8 : e4m3}, {25, bf16}})
    agrees({.m = m, .n = 64, .k = 256, .weights = weights}, whole, false, support::Fill::special);
  agrees({.m = 16, .n = 64, .k = 512, .weights = i4, .block = 128, .block_scale = e8m0}, whole,
         false, support::Fill::special);
}

// 4-bit weights as packed pairs times their scales: scales outside the range of the fast path,
// zeros and infinity.
TEST_F(GpuGemmSkinny, ScalesOutOfRange) {
  const DeviceProps device = Device::named("cuda:0").props();
  if (device.compute_capability != 90) GTEST_SKIP() << "wgmma is sm_90a's";
  const auto scale_of = [](std::int64_t block, std::int64_t row) -> std::optional<double> {
    if (row < 16) return std::nullopt;
    if (row < 32) return row % 3 == 0 ? 0. : row % 3 == 1 ? -0x1p9 : 0x1.8p-110;  // all in range
    if (row < 48) return std::ldexp(1.25, block % 2 == 0 ? -124 : -111);
    if (row < 64) return block == 1 ? std::optional(-0x1p10) : std::nullopt;
    if (row == 70 && block == 2) return std::numeric_limits<double>::infinity();
    return std::nullopt;
  };
  for (const auto& [m, weights] : {std::pair{12, u4}, {20, i4}}) {
    const SkinnyProblem problem{
        .m = m, .n = 96, .k = 512, .weights = weights, .y = f32, .block = 128};
    expect_agrees(
        gemm_skinny_engine(), skinny_product(problem), true, 3, support::Fill::plain, device,
        [](const Config& config) {
          return config.knob("helpers") > 0 && config.knob("digits") == 0;
        },
        [&](support::BoundMemory& memory) {
          for (const TensorId id : memory.bound())
            if (const Tensor& scale = memory.graph().tensor(id); scale.name == "block_scale")
              for (std::int64_t i = 0; i < element_count(scale.dims); ++i)
                if (const auto value = scale_of(i / problem.n, i % problem.n))
                  write_element(scale, memory.data(id), i, *value);
        });
  }
}

TEST_F(GpuGemmSkinny, FusedAndBatched) {
  for (const bool k_major : {true, false})
    for (const bool columns : {true, false}) {
      SkinnyProblem p{.m = 4, .n = 80, .k = 96, .k_major = k_major, .few_columns = columns};
      p.scaled = p.after = p.before = true;
      expect_agrees(gemm_skinny_engine(), skinny_product(p));
      p.batches = 3;
      p.weights = e4m3;
      expect_agrees(gemm_skinny_engine(), skinny_product(p));
      p.x = p.y = f32;
      expect_agrees(gemm_skinny_engine(), skinny_product(p));
    }
}

// Block scales, applied to packed pairs where that rounds once, else to f32 values.
TEST_F(GpuGemmSkinny, ScalesOfBlocks) {
  for (const bool k_major : {true, false}) {
    for (const auto& [weights, block, scale] :
         {std::tuple{i4, 128, bf16}, {i4, 32, f32}, {e2m1, 16, e4m3}, {e4m3, 32, e8m0}})
      expect_agrees(gemm_skinny_engine(), skinny_product({.m = 3,
                                                          .n = 64,
                                                          .k = 416,
                                                          .weights = weights,
                                                          .k_major = k_major,
                                                          .block = block,
                                                          .block_scale = scale}));
  }
  expect_agrees(
      gemm_skinny_engine(),
      skinny_product({.m = 2, .n = 80, .k = 256, .weights = i4, .few_columns = true, .block = 64}));
}

TEST_F(GpuGemmSkinny, ZeroPointsOfBlocks) {
  for (const bool k_major : {true, false})
    for (const auto& [weights, zero] : {std::pair{u4, u4}, {i4, bf16}, {u8, u8}})
      expect_agrees(gemm_skinny_engine(), skinny_product({.m = 3,
                                                          .n = 64,
                                                          .k = 416,
                                                          .weights = weights,
                                                          .k_major = k_major,
                                                          .block = 32,
                                                          .zero = zero}));
  expect_agrees(gemm_skinny_engine(), skinny_product({.m = 2,
                                                      .n = 80,
                                                      .k = 256,
                                                      .weights = u4,
                                                      .few_columns = true,
                                                      .block = 256,
                                                      .zero = i8}));
}

// Unaligned rows, infinities and NaN.
TEST_F(GpuGemmSkinny, OddExtentsAndSpecialNumbers) {
  for (const bool k_major : {true, false}) {
    expect_agrees(gemm_skinny_engine(),
                  skinny_product({.m = 1, .n = 33, .k = 77, .k_major = k_major}));
    expect_agrees(gemm_skinny_engine(),
                  skinny_product({.m = 3, .n = 50, .k = 70, .weights = e4m3, .k_major = k_major}));
    expect_agrees(gemm_skinny_engine(),
                  skinny_product({.m = 3,
                                  .n = 64,
                                  .k = 256,
                                  .weights = i4,
                                  .k_major = k_major,
                                  .block = 128,
                                  .block_scale = e8m0}),
                  k_major, 5, support::Fill::special);
    for (const DType weights : {bf16, e4m3, e5m2})
      expect_agrees(
          gemm_skinny_engine(),
          skinny_product({.m = 3, .n = 64, .k = 64, .weights = weights, .k_major = k_major}), false,
          5, support::Fill::special);
  }
}

}  // namespace
}  // namespace ashlar::cuda
