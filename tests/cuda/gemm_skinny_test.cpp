// Products with few rows: kernels of decoding compile without spills, and small ones agree with the
// oracle.
#include <cmath>
#include <limits>
#include <optional>

#include "base/element.hpp"
#include "cuda/engines/engines.hpp"
#include "engine_agrees.hpp"
#include "engine_compiles.hpp"

namespace ashlar::cuda {
namespace {

struct Problem {
  std::int64_t few, many, depth;
  DType x = bf16, weights = bf16;
  bool along = true;  // weights of neighbouring depths lie together
  bool few_columns = false;
  std::int64_t batches = 1;
  bool scaled = false;  // weights are multiplied by a number per row
  bool after = false;   // a bias and a relu
  bool before = false;  // x is doubled first
  DType y = bf16;
  std::int64_t block = 0;  // depths that share a scale of the weights
  DType block_scale = bf16;
};

Graph product(const Problem& p) {
  Graph graph;
  const auto batched = [&](std::int64_t a, std::int64_t b) {
    return p.batches == 1 ? Dims{a, b} : Dims{p.batches, a, b};
  };
  const auto matrix = [&](const char* name, std::int64_t rows, std::int64_t columns, DType dtype,
                          bool by_columns) {
    const Dims strides = by_columns ? Dims{1, rows} : Dims{columns, 1};
    const Dims all = p.batches == 1 ? strides : Dims{rows * columns, strides[0], strides[1]};
    return graph.input(name, batched(rows, columns), dtype, Layout(all));
  };
  const bool swap = p.few_columns;
  Value x = swap ? matrix("x", p.depth, p.few, p.x, true) : matrix("x", p.few, p.depth, p.x, false);
  Value w = swap ? matrix("w", p.many, p.depth, p.weights, !p.along)
                 : matrix("w", p.depth, p.many, p.weights, p.along);
  if (p.before) x = graph.pointwise(PointwiseMode::add, std::array{x, x}, {}, {.dtype = p.x});
  const auto per_row = [&](const char* name) {
    const Dims dims = swap ? Dims{p.many, 1} : Dims{1, p.many};
    return graph.input(name, p.batches == 1 ? dims : Dims{1, dims[0], dims[1]}, f32);
  };
  if (p.block > 0) {
    const std::int64_t blocks = (p.depth + p.block - 1) / p.block;
    const Value scale = graph.input(
        "block_scale", swap ? Dims{p.many, blocks} : Dims{blocks, p.many}, p.block_scale);
    BlockScaleDequantize op;
    op.block_size = swap ? Dims{1, p.block} : Dims{p.block, 1};
    w = graph.apply(op, {{BlockScaleDequantize::x, w}, {BlockScaleDequantize::scale, scale}},
                    {BlockScaleDequantize::y}, {.dtype = p.x})[0];
  }
  if (p.scaled)
    w = graph.pointwise(PointwiseMode::mul, std::array{w, per_row("scale")}, {}, {.dtype = f32});
  Value y = swap ? graph.matmul(w, x, {.dtype = f32}) : graph.matmul(x, w, {.dtype = f32});
  if (p.after) y = relu(y + per_row("bias"));
  graph.output("y", y, {.dtype = p.y});
  return graph;
}

class GemmSkinny : public testing::Test {
 protected:
  void SetUp() override {
    if (!nvrtc().is_open) GTEST_SKIP() << nvrtc().reason;
  }
};

// Scales of blocks, fused: every 4th configuration in which x is digits, or is not, put in order by
// a launch before or by each block.
TEST_F(GemmSkinny, ScalesOfBlocksWithoutSpills) {
  const DeviceProps h200 = Device::named("h200").props();
  for (const std::int64_t few : {8, 16, 32})
    for (const std::int64_t many : {28672, 4096})
      for (const auto& [digits, in_blocks] :
           {std::pair{0, false}, {0, true}, {1, false}, {1, true}}) {
        if (digits == 1 && in_blocks && few > 8) continue;  // are not offered
        const Problem problem{.few = few, .many = many, .depth = 8192, .weights = i4, .block = 128};
        SCOPED_TRACE(testing::Message() << few << " rows of x, " << many << " of weights");
        const auto plan = build_plan(product(problem), h200, {}, nullptr, false);
        ASSERT_EQ(plan->steps.size(), 1);
        const Region& region = plan->steps[0].region;
        std::vector<Config> configs = gemm_skinny_engine().configs(region, h200);
        std::erase_if(configs, [digits = digits, in_blocks = in_blocks](const Config& c) {
          return c.knob("digits") != digits || (c.knob("helpers") > 1) != in_blocks;
        });
        ASSERT_FALSE(configs.empty());
        keep_every(4, configs);
        expect_compiles(gemm_skinny_engine(), plan->lowered.graph, region, configs, {kHopper});
      }
}

TEST_F(GemmSkinny, WithoutSpills) {
  for (const DType weights : {bf16, e4m3, i4})
    for (const std::int64_t few : {1, 32})
      expect_compiles(gemm_skinny_engine(),
                      product({.few = few, .many = 8192, .depth = 28672, .weights = weights}),
                      {kHopper}, true, 0, 4);
  for (const DType weights : {bf16, i4})
    expect_compiles(
        gemm_skinny_engine(),
        product({.few = 32, .many = 8192, .depth = 8192, .weights = weights, .along = false}),
        {kHopper});
  expect_compiles(gemm_skinny_engine(),
                  product({.few = 8, .many = 4096, .depth = 4096, .x = f32, .weights = f32}),
                  {"sm_80", "sm_120"});
}

class GpuGemmSkinny : public testing::Test {
 protected:
  void SetUp() override {
    if (device_count() == 0) GTEST_SKIP() << driver().reason;
  }
};

// Rows, depths and packets that do not fill their tiles.
TEST_F(GpuGemmSkinny, EveryTypeOfWeights) {
  struct Types {
    DType x, weights;
    bool along;
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
    expect_agrees(gemm_skinny_engine(), product({.few = 5,
                                                 .many = 96,
                                                 .depth = 352,
                                                 .x = types.x,
                                                 .weights = types.weights,
                                                 .along = types.along,
                                                 .y = types.x}));
}

// Blocks of a cluster; little shared memory, so that x comes in phases; few multiprocessors, so
// that blocks take several passes.
TEST_F(GpuGemmSkinny, ClustersPhasesAndPasses) {
  const DeviceProps whole = Device::named("cuda:0").props();
  DeviceProps with_little_memory = whole, small = whole;
  with_little_memory.shared_bytes = with_little_memory.l1_bytes = 72 << 10;
  small.compute_units = 2;
  const auto agrees = [](const Problem& problem, const DeviceProps& device) {
    expect_agrees(gemm_skinny_engine(), product(problem), false, 3, support::Fill::plain, device);
  };
  for (const DeviceProps& device : {whole, with_little_memory, small})
    agrees({.few = 17, .many = 200, .depth = 1032}, device);
  agrees({.few = 4, .many = 80, .depth = 256, .batches = 3}, small);
  agrees({.few = 4, .many = 200, .depth = 256, .weights = i4, .block = 64}, small);
}

// Weights that the copy engine brings: every way to lay them out, chunks and rows that end early,
// more of them than stages, and several passes.
TEST_F(GpuGemmSkinny, ByRows) {
  const DeviceProps whole = Device::named("cuda:0").props();
  DeviceProps small = whole;
  small.compute_units = 2;
  const auto agrees = [](const Problem& problem, const DeviceProps& device, bool all) {
    expect_agrees(gemm_skinny_engine(), product(problem), all, 3, support::Fill::plain, device,
                  [](const Config& config) { return config.knob("helpers") == 0; });
  };
  agrees({.few = 5, .many = 72, .depth = 1056}, whole, true);
  agrees({.few = 17, .many = 208, .depth = 1024, .weights = e4m3, .after = true}, small, true);
  agrees({.few = 32, .many = 96, .depth = 1536, .weights = i4, .block = 128}, small, true);
  agrees({.few = 12, .many = 80, .depth = 1152, .weights = i4, .block = 128}, small, false);
  agrees({.few = 3, .many = 40, .depth = 1088, .weights = e4m3}, small, true);
  agrees({.few = 8, .many = 56, .depth = 1152, .weights = i4, .batches = 1, .block = 128}, small,
         true);
  for (const std::int64_t few : {1, 8})
    for (const DType weights : {bf16, e4m3, i8, i4, u4, e2m1})
      agrees({.few = few, .many = 48, .depth = 640, .weights = weights, .batches = few}, small,
             false);
  for (const auto& [weights, scale] : {std::pair{i4, f32}, {i4, bf16}, {e4m3, e8m0}})
    agrees({.few = 3,
            .many = 64,
            .depth = 896,
            .weights = weights,
            .block = 128,
            .block_scale = scale},
           whole, false);
  agrees({.few = 2, .many = 80, .depth = 512, .x = f16, .weights = e4m3, .y = f16}, whole, false);
}

// Weights that warpgroups multiply: one to 32 rows of x that do not fill the columns of wgmma, rows
// and chunks that end early, several units of a block, clusters, two warpgroups that share a chunk.
TEST_F(GpuGemmSkinny, ByGroups) {
  const DeviceProps whole = Device::named("cuda:0").props();
  if (whole.compute_capability != 90) GTEST_SKIP() << "wgmma is sm_90a's";
  DeviceProps small = whole;
  small.compute_units = 4;
  const auto agrees = [](const Problem& problem, const DeviceProps& device, bool all,
                         support::Fill fill = support::Fill::plain) {
    SCOPED_TRACE(testing::Message() << problem.few << " " << to_string(problem.weights) << " "
                                    << problem.many << " " << problem.depth);
    expect_agrees(gemm_skinny_engine(), product(problem), all, 3, fill, device,
                  [](const Config& config) { return config.knob("helpers") > 0; });
  };
  agrees({.few = 32, .many = 200, .depth = 1536, .weights = i4, .block = 128}, small, true);
  agrees({.few = 17, .many = 328, .depth = 1152, .weights = e4m3, .after = true}, small, true);
  agrees({.few = 5, .many = 72, .depth = 1280, .weights = i4, .block = 256}, small, true);
  agrees({.few = 19, .many = 136, .depth = 448}, small, true);
  // Blocks with fewer rows than their warps have room for.
  expect_agrees(gemm_skinny_engine(),
                product({.few = 7, .many = 340, .depth = 768, .weights = e4m3, .after = true}),
                true, 3, support::Fill::plain, small,
                [](const Config& config) { return config.knob("block_rows") > 0; });
  // Clusters of four.
  for (const auto& [few, weights] : {std::pair{20, i4}, {3, e4m3}})
    expect_agrees(gemm_skinny_engine(),
                  product({.few = few,
                           .many = 136,
                           .depth = 2048,
                           .weights = weights,
                           .after = true,
                           .block = weights == i4 ? 128 : 0}),
                  true, 3, support::Fill::plain, whole, [](const Config& config) {
                    return config.knob("helpers") > 0 && config.knob("split") == 4;
                  });
  // All of the GPU: one unit for each block, or for two.
  agrees({.few = 20, .many = 136, .depth = 1536, .weights = i4, .block = 128}, whole, true);
  agrees({.few = 10, .many = 136, .depth = 2048, .weights = e4m3}, whole, true);
  for (const std::int64_t few : {1, 8, 12, 20})
    for (const DType weights : {e4m3, i8, i4, u4, e2m1})
      agrees({.few = few, .many = 80, .depth = 768, .weights = weights}, whole, false);
  for (const auto& [weights, scale] : {std::pair{i4, bf16}, {u4, bf16}, {e4m3, e8m0}})
    agrees({.few = 24,
            .many = 192,
            .depth = 1024,
            .weights = weights,
            .block = 128,
            .block_scale = scale},
           whole, false);
  agrees({.few = 9, .many = 80, .depth = 512, .x = f16, .weights = e4m3, .y = f16}, whole, false);
  // The emulated GPU has no conversion of e4m3, whose NaN only other walks mark.
  for (const auto& [few, weights] : {std::pair{11, is_emulated_gpu() ? i8 : e4m3}, {25, bf16}})
    agrees({.few = few, .many = 64, .depth = 256, .weights = weights}, whole, false,
           support::Fill::special);
  agrees({.few = 16, .many = 64, .depth = 512, .weights = i4, .block = 128, .block_scale = e8m0},
         whole, false, support::Fill::special);
}

// 4-bit weights as pairs times their scales: scales that are so large or small that they are not
// multiplied as the others are, zeros and infinity.
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
  for (const auto& [few, weights] : {std::pair{12, u4}, {20, i4}}) {
    const Problem problem{
        .few = few, .many = 96, .depth = 512, .weights = weights, .y = f32, .block = 128};
    expect_agrees(
        gemm_skinny_engine(), product(problem), true, 3, support::Fill::plain, device,
        [](const Config& config) {
          return config.knob("helpers") > 0 && config.knob("digits") == 0;
        },
        [&](support::BoundMemory& memory) {
          for (const TensorId id : memory.bound())
            if (const Tensor& scale = memory.graph().tensor(id); scale.name == "block_scale")
              for (std::int64_t i = 0; i < element_count(scale.dims); ++i)
                if (const auto value = scale_of(i / problem.many, i % problem.many))
                  write_element(scale, memory.data(id), i, *value);
        });
  }
}

// 4-bit weights times digits of x, as integers.
class GpuGemmSkinnyDigits : public GpuGemmSkinny {
 protected:
  void SetUp() override {
    GpuGemmSkinny::SetUp();
    if (!IsSkipped() && Device::named("cuda:0").props().compute_capability != 90)
      GTEST_SKIP() << "wgmma is sm_90a's";
  }
  // `value`, if there is one, of the element of x at a row and a depth, or nothing.
  using Value = std::function<std::optional<double>(std::int64_t row, std::int64_t depth)>;
  static void agrees(const Problem& problem, bool all, const Value& value = {},
                     support::Fill fill = support::Fill::plain) {
    SCOPED_TRACE(testing::Message() << problem.few << " " << to_string(problem.weights) << " "
                                    << problem.many << " " << problem.depth);
    DeviceProps small = Device::named("cuda:0").props();
    small.compute_units = 4;
    const auto change = [&](support::BoundMemory& memory) {
      for (const TensorId id : memory.bound())
        if (const Tensor& x = memory.graph().tensor(id); value && x.name == "x")
          for (std::int64_t i = 0; i < element_count(x.dims); ++i)
            if (const auto other = value(i / problem.depth, i % problem.depth))
              write_element(x, memory.data(id), i, *other);
    };
    // Digits are made by a launch before, or by warps of each block where x has 8 rows at most.
    for (const bool in_blocks : {false, true}) {
      if (in_blocks && problem.few > 8) continue;
      expect_agrees(
          gemm_skinny_engine(), product(problem), all, 3, fill, small,
          [&](const Config& config) {
            return config.knob("digits") == 1 && (config.knob("helpers") > 1) == in_blocks;
          },
          change);
    }
  }
};

// Rows of x that do not fill the columns of wgmma, rows and chunks that end early.
TEST_F(GpuGemmSkinnyDigits, EveryLayout) {
  agrees({.few = 5, .many = 200, .depth = 1280, .weights = i4, .block = 256}, true);
  agrees({.few = 16, .many = 136, .depth = 1536, .weights = u4, .after = true, .block = 128}, true);
  agrees({.few = 32, .many = 200, .depth = 1280, .weights = i4, .block = 256}, true);
  // Warps that make digits of fewer rows at a time, in stages that are filled several times.
  for (const std::int64_t few : {1, 2, 3})
    agrees({.few = few, .many = 600, .depth = 4352, .weights = i4, .y = f32, .block = 128}, true);
  for (const std::int64_t few : {1, 3, 8, 9, 16, 17, 25})
    for (const DType weights : {i4, u4})
      agrees({.few = few, .many = 80, .depth = 1280, .weights = weights, .y = f32, .block = 128},
             false);
  agrees({.few = 2,
          .many = 72,
          .depth = 512,
          .x = f16,
          .weights = i4,
          .y = f16,
          .block = 128,
          .block_scale = f16},
         true);
}

// Steps of numbers of very different size, and of nearly the largest and the smallest there are.
TEST_F(GpuGemmSkinnyDigits, LargeAndSmallNumbers) {
  const Problem in_bf16{.few = 7, .many = 80, .depth = 512, .weights = i4, .y = f32, .block = 128};
  Problem in_f16 = in_bf16;
  in_f16.x = in_f16.block_scale = f16;
  for (const Problem& problem : {in_bf16, in_f16}) {
    // One 2^12 (2^9) times the others.
    agrees(problem, false, [&](std::int64_t row, std::int64_t depth) -> std::optional<double> {
      if (depth % 128 != 5 * row) return {};
      return problem.x == f16 ? 0x1.ffp9 : -0x1.fep12;
    });
    agrees(problem, false, [](std::int64_t row, std::int64_t depth) -> std::optional<double> {
      if (row % 2 == 0) return 0.;
      return depth < 256 ? std::optional(-0.) : std::nullopt;
    });
  }
  // Whole steps below the normal numbers, mantissas full of ones, and one near the largest.
  agrees(in_bf16, false, [](std::int64_t row, std::int64_t depth) -> std::optional<double> {
    const double sign = (row + depth) % 3 == 0 ? -1 : 1;
    if (depth < 128) return sign * std::ldexp(1. + static_cast<double>(depth % 100), -133);
    if (depth < 256) return sign * std::ldexp(0x1.fep0, static_cast<int>(depth % 14 - row));
    if (depth < 384) return depth == 300 ? sign * 0x1.fep124 : 0.;
    return {};
  });
}

// The digits do not say what is not finite: such sums are made once more.
TEST_F(GpuGemmSkinnyDigits, InfinitiesAndNaN) {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  for (const std::int64_t few : {3, 8, 9})
    agrees({.few = few,
            .many = 200,
            .depth = 1280,
            .weights = few == 9 ? u4 : i4,
            .y = f32,
            .block = 128},
           few <= 8, [](std::int64_t row, std::int64_t depth) -> std::optional<double> {
             if (row == 1 && depth == 700) return kInf;
             if (row == 2 && depth == 3) return -kInf;
             if (row == 3 && (depth == 17 || depth == 1279)) return depth == 17 ? kInf : -kInf;
             if (row % 4 == 0 && row > 0 && depth == 640)
               return std::numeric_limits<double>::quiet_NaN();
             return {};
           });
  agrees({.few = 16, .many = 64, .depth = 512, .weights = i4, .block = 128, .block_scale = e8m0},
         true, {}, support::Fill::special);
  agrees({.few = 20, .many = 64, .depth = 512, .weights = u4, .block = 128}, true, {},
         support::Fill::special);
}

TEST_F(GpuGemmSkinny, FusedAndBatched) {
  for (const bool along : {true, false})
    for (const bool columns : {true, false}) {
      Problem p{.few = 4, .many = 80, .depth = 96, .along = along, .few_columns = columns};
      p.scaled = p.after = p.before = true;
      expect_agrees(gemm_skinny_engine(), product(p));
      p.batches = 3;
      p.weights = e4m3;
      expect_agrees(gemm_skinny_engine(), product(p));
      p.x = p.y = f32;
      expect_agrees(gemm_skinny_engine(), product(p));
    }
}

// Scales of blocks: as factors of pairs where that is exact but for one rounding, else of numbers.
TEST_F(GpuGemmSkinny, ScalesOfBlocks) {
  for (const bool along : {true, false}) {
    for (const auto& [weights, block, scale] :
         {std::tuple{i4, 128, bf16}, {i4, 32, f32}, {e2m1, 16, e4m3}, {e4m3, 32, e8m0}})
      expect_agrees(gemm_skinny_engine(), product({.few = 3,
                                                   .many = 64,
                                                   .depth = 416,
                                                   .weights = weights,
                                                   .along = along,
                                                   .block = block,
                                                   .block_scale = scale}));
  }
  expect_agrees(
      gemm_skinny_engine(),
      product(
          {.few = 2, .many = 80, .depth = 256, .weights = i4, .few_columns = true, .block = 64}));
}

// Rows that start anywhere, and what is not a number.
TEST_F(GpuGemmSkinny, OddExtentsAndSpecialNumbers) {
  for (const bool along : {true, false}) {
    expect_agrees(gemm_skinny_engine(),
                  product({.few = 1, .many = 33, .depth = 77, .along = along}));
    expect_agrees(gemm_skinny_engine(),
                  product({.few = 3, .many = 50, .depth = 70, .weights = e4m3, .along = along}));
    expect_agrees(gemm_skinny_engine(),
                  product({.few = 3,
                           .many = 64,
                           .depth = 256,
                           .weights = i4,
                           .along = along,
                           .block = 128,
                           .block_scale = e8m0}),
                  along, 5, support::Fill::special);
    for (const DType weights : {bf16, e4m3, e5m2})
      expect_agrees(
          gemm_skinny_engine(),
          product({.few = 3, .many = 64, .depth = 64, .weights = weights, .along = along}), false,
          5, support::Fill::special);
  }
}

}  // namespace
}  // namespace ashlar::cuda
