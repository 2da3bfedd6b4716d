// cuda.gemm_sm90 with quantised weights, scaled by blocks or rows: kernels compile without spills,
// and small ones agree with the oracle.
#include <array>
#include <optional>

#include "api/backends.hpp"
#include "cuda/engines/engines.hpp"
#include "engine_agrees.hpp"
#include "engine_compiles.hpp"

namespace ashlar::cuda {
namespace {

struct Dequantized {
  std::int64_t rows = 2048, columns = 4096, depth = 4096;
  DType stored = e4m3, scale = e8m0;
  std::int64_t block = 32;  // k values per scale; 0: no block scales
  DType x = bf16;
  bool along_rows = false;         // weights are contiguous along the result's columns, not along K
  bool scales_along_depth = true;  // scales of a column are contiguous
  bool per_column = false;         // an additional scale of f32
  bool on_the_left = false;        // weights are operand a
  bool relu_before = false;        // the other operand is relu(x)
  std::int64_t batches = 1;
  bool negative = false;
  std::optional<DType> zero = {};  // zero points per block

  Graph graph() const {
    Graph g;
    const auto batched = [&](Dims dims) {
      if (batches > 1) dims = {batches, dims[0], dims[1]};
      return dims;
    };
    const auto turned = [&](const char* name, std::int64_t a, std::int64_t b, DType dtype,
                            bool is_turned) {
      const Dims last = {1, a}, plain = {b, 1};
      Dims strides = is_turned ? last : plain;
      if (batches > 1) strides = {a * b, strides[0], strides[1]};
      return g.input(name, batched({a, b}), dtype, Layout(strides));
    };
    const bool left = on_the_left;
    const std::int64_t of_weights = left ? rows : columns;
    Value w = left ? turned("w", rows, depth, stored, along_rows)
                   : turned("w", depth, columns, stored, !along_rows);
    Value other =
        left ? g.input("x", batched({depth, columns}), x) : g.input("x", batched({rows, depth}), x);
    if (relu_before)
      other = g.pointwise(PointwiseMode::relu_fwd, std::array{other}, {}, {.dtype = x});
    if (block > 0) {
      const std::int64_t blocks = (depth + block - 1) / block;
      const Value scales = left ? turned("scale", rows, blocks, scale, !scales_along_depth)
                                : turned("scale", blocks, columns, scale, scales_along_depth);
      BlockScaleDequantize op;
      op.block_size = left ? Dims{1, block} : Dims{block, 1};
      op.negative_scale = negative;
      if (batches > 1) op.block_size = {1, op.block_size[0], op.block_size[1]};
      Value zeros;
      if (zero)
        zeros = left ? turned("zero", rows, blocks, *zero, !scales_along_depth)
                     : turned("zero", blocks, columns, *zero, scales_along_depth);
      w = g.apply(op,
                  {{BlockScaleDequantize::x, w},
                   {BlockScaleDequantize::scale, scales},
                   {BlockScaleDequantize::zero_point, zeros}},
                  {BlockScaleDequantize::y}, {.dtype = x});
    }
    if (per_column) {
      Dims dims = left ? Dims{of_weights, 1} : Dims{1, of_weights};
      if (batches > 1) dims = {1, dims[0], dims[1]};
      w = g.pointwise(PointwiseMode::mul, std::array{w, g.input("column", dims, f32)}, {},
                      {.dtype = x});
    }
    g.output("y",
             relu(left ? g.matmul(w, other, {.dtype = f32}) : g.matmul(other, w, {.dtype = f32})),
             {.dtype = x});
    return g;
  }
};

Dequantized small(DType stored, DType scale, std::int64_t block) {
  return {
      .rows = 70, .columns = 200, .depth = 352, .stored = stored, .scale = scale, .block = block};
}

TEST(GemmSm90DequantPlans, DequantisationIsFusedWhereItIsFaster) {
  const auto steps = [](const Dequantized& d) {
    return build_plan(d.graph(), Device::named("h200").props(), {}, nullptr, false)->steps.size();
  };
  EXPECT_EQ(steps({.rows = 64, .columns = 8192, .depth = 8192}), 1);
  EXPECT_EQ(steps({.rows = 256, .stored = i4, .scale = f16, .block = 128}), 1);
  // Every row of tiles would dequantise all weights again with a program.
  EXPECT_EQ(steps({.rows = 65536, .negative = true}), 2);
}

TEST(GemmSm90DequantPlans, ZeroPointsAreSubtractedAsHalf2) {
  const DeviceProps h200 = Device::named("h200").props();
  const auto text = [&](const Dequantized& d) {
    const auto plan = build_plan(d.graph(), h200, {}, nullptr, false);
    const Region& region = plan->steps[0].region;
    const Config config = gemm_sm90_engine().configs(region, h200).at(0);
    return gemm_sm90_engine()
        .design(plan->lowered.graph, region, config, h200)
        .launches.at(0)
        .source.text;
  };
  Dequantized d{.rows = 512, .stored = u4, .scale = bf16, .block = 128, .zero = u4};
  EXPECT_NE(text(d).find("kZeroBits = 4;"), std::string::npos);
  EXPECT_NE(text(d).find("kExactZeros = true;"), std::string::npos);
  d.zero = bf16;
  EXPECT_NE(text(d).find("kExactZeros = false;"), std::string::npos);
  d.zero = {};
  EXPECT_NE(text(d).find("kZeroBits = 0;"), std::string::npos);
}

class GemmSm90Dequant : public testing::Test {
 protected:
  void SetUp() override {
    if (!nvrtc().is_open) GTEST_SKIP() << nvrtc().reason;
  }
};

TEST_F(GemmSm90Dequant, CompileWithoutSpills) {
  expect_compiles(gemm_sm90_engine(), Dequantized{.rows = 256}.graph(), {kHopper}, true);
  for (const std::int64_t rows : {64, 2048}) {
    const auto compiles = [&](Dequantized d) {
      d.rows = rows;
      expect_compiles(gemm_sm90_engine(), d.graph(), {kHopper});
    };
    compiles({.stored = e4m3});
    compiles({.stored = e2m1});
    compiles({.stored = i4, .scale = f32, .block = 128});
    compiles({.stored = i8, .block = 0, .per_column = true});
    compiles({.stored = u4, .scale = f16, .block = 128, .x = f16, .zero = u4});
    compiles({.stored = i4, .scale = bf16, .block = 32, .zero = f32});
    compiles({.stored = i8, .scale = bf16, .block = 128, .along_rows = true, .zero = i8});
  }
}

class GpuGemmSm90Dequant : public testing::Test {
 protected:
  void SetUp() override {
    if (device_count() == 0) GTEST_SKIP() << driver().reason;
  }
  static void expect_right(const Dequantized& d, bool all_configs = false) {
    expect_agrees(gemm_sm90_engine(), d.graph(), all_configs);
  }
};

TEST_F(GpuGemmSm90Dequant, EveryWeightType) {
  for (const DType stored : {e4m3, e5m2, i8, i4, u4, e2m1})
    for (const DType x : {bf16, f16}) {
      Dequantized d = small(stored, x, 32);
      d.x = x;
      expect_right(d);
    }
}
TEST_F(GpuGemmSm90Dequant, EveryTypeOfScales) {
  for (const DType scale : {e8m0, e4m3, bf16, f16, f32}) expect_right(small(e2m1, scale, 16));
  for (const std::int64_t block : {32, 64, 128}) {
    expect_right(small(i4, f32, block));
    expect_right(small(e5m2, e8m0, block));
  }
}
TEST_F(GpuGemmSm90Dequant, ScalesOfAnyLayout) {
  for (const bool along : {true, false})
    for (const DType stored : {e4m3, i4}) {
      Dequantized d = small(stored, e8m0, 32);
      d.scales_along_depth = along;
      expect_right(d);
    }
}
TEST_F(GpuGemmSm90Dequant, EveryConfiguration) {
  Dequantized d = small(i4, f16, 32);
  d.rows = 300;
  expect_right(d, true);
  d.stored = e4m3;
  d.rows = 60;
  expect_right(d, true);
}
// More tiles than SMs: cp.async for the next tile are in flight while one is computed.
TEST_F(GpuGemmSm90Dequant, ConsecutiveTiles) {
  DeviceProps device = Device::named("cuda:0").props();
  device.compute_units = 2;
  for (const DType stored : {e4m3, e2m1}) {
    Dequantized d = small(stored, e8m0, 32);
    d.rows = 300;
    expect_agrees(gemm_sm90_engine(), d.graph(), true, 3, support::Fill::plain, device);
  }
}
TEST_F(GpuGemmSm90Dequant, ColumnScalesMultiplyTheResult) {
  for (const DType stored : {i8, i4, e4m3}) {
    Dequantized d = small(stored, f32, 0);
    d.per_column = true;
    expect_right(d);
    d.block = 32;
    expect_right(d);
    d.on_the_left = true;
    expect_right(d);
    d.batches = 3;
    expect_right(d);
  }
}
TEST_F(GpuGemmSm90Dequant, OnTheLeftAndWithAPrologue) {
  Dequantized d = small(e4m3, e8m0, 32);
  d.on_the_left = true;
  expect_right(d);
  d.relu_before = true;
  expect_right(d);
  d.on_the_left = false;
  expect_right(d);
}
// Without half2 conversion: by the program.
TEST_F(GpuGemmSm90Dequant, ByAProgram) {
  for (const DType stored : {e4m3, i4}) {
    Dequantized d = small(stored, e8m0, 32);
    d.negative = true;
    expect_right(d);
    d = small(stored, bf16, 32);
    d.along_rows = true;
    expect_right(d);
    d = small(stored, bf16, 32);
    d.depth = 350;
    d.columns = 202;
    expect_right(d);
  }
}
// Weights as in AWQ and GPTQ. Differences of 4-bit values are exact in half2, others are computed
// in f32.
TEST_F(GpuGemmSm90Dequant, AboutZeroPoints) {
  for (const auto& [stored, scale, zero, x] : {std::tuple{u4, f16, u4, f16},
                                               {i4, f32, i8, bf16},
                                               {u4, bf16, bf16, bf16},
                                               {i8, bf16, u8, bf16},
                                               {e4m3, e8m0, f32, bf16}}) {
    Dequantized d = small(stored, scale, 32);
    d.x = x;
    d.zero = zero;
    d.scales_along_depth = stored == u4;
    expect_right(d);
  }
  Dequantized d = small(u4, bf16, 16);  // two blocks per packet
  d.rows = 72;
  d.zero = i4;
  d.on_the_left = true;
  d.batches = 2;
  expect_right(d);
}
TEST_F(GpuGemmSm90Dequant, AboutZeroPointsConsecutiveTiles) {
  DeviceProps device = Device::named("cuda:0").props();
  device.compute_units = 2;
  Dequantized d = small(u4, bf16, 32);
  d.rows = 300;
  d.zero = u4;
  expect_agrees(gemm_sm90_engine(), d.graph(), false, 3, support::Fill::plain, device);
}
TEST_F(GpuGemmSm90Dequant, AboutZeroPointsByAProgram) {
  for (const DType stored : {u4, u8}) {
    Dequantized d = small(stored, bf16, 32);
    d.zero = stored;
    d.along_rows = true;
    d.scales_along_depth = false;
    expect_right(d);
    d.negative = true;
    expect_right(d);
    d.depth = 350;
    d.columns = 202;
    expect_right(d);
  }
}
// By a separate vectorised kernel, for tensors that others read, too.
TEST_F(GpuGemmSm90Dequant, Separate) {
  for (const DType stored : {e4m3, i4})
    for (const std::int64_t block : {8, 32})
      for (const bool negative : {false, true}) {
        Graph g;
        const Value w = g.input("w", {3, 40, 96}, stored);
        const Value scale = g.input("scale", {3, 40, 96 / block}, bf16);
        BlockScaleDequantize op;
        op.block_size = {1, 1, block};
        op.negative_scale = negative;
        const Value y =
            g.apply(op, {{BlockScaleDequantize::x, w}, {BlockScaleDequantize::scale, scale}},
                    {BlockScaleDequantize::y}, {.dtype = f32});
        g.output("y", y + g.input("z", {3, 40, 96}, f32), {.dtype = bf16});
        expect_agrees(pointwise_engine(), g);
      }
  Graph rows;  // rows share scales
  const Value scale = rows.input("scale", {5, 4}, e8m0);
  BlockScaleDequantize op;
  op.block_size = {16, 32};
  rows.output("y", rows.apply(op,
                              {{BlockScaleDequantize::x, rows.input("w", {70, 100}, e4m3)},
                               {BlockScaleDequantize::scale, scale}},
                              {BlockScaleDequantize::y}, {.dtype = bf16}));
  expect_agrees(pointwise_engine(), rows);
}
TEST_F(GpuGemmSm90Dequant, SeparateAboutZeroPoints) {
  for (const DType zero : {u4, i8, f32}) {
    Graph g;
    BlockScaleDequantize op;
    op.block_size = {32, 1};
    const Value y = g.apply(op,
                            {{BlockScaleDequantize::x, g.input("w", {100, 70}, u4)},
                             {BlockScaleDequantize::scale, g.input("scale", {4, 70}, f16)},
                             {BlockScaleDequantize::zero_point, g.input("zero", {4, 70}, zero)}},
                            {BlockScaleDequantize::y}, {.dtype = f16});
    g.output("y", y);
    expect_agrees(pointwise_engine(), g);
  }
}
// NaN and infinity among values and scales.
TEST_F(GpuGemmSm90Dequant, NonfiniteValues) {
  const DeviceProps device = Device::named("cuda:0").props();
  for (const DType stored : {e4m3, e5m2})
    for (const DType x : {bf16, f16}) {
      Dequantized d = small(stored, x == bf16 ? e8m0 : f16, 32);
      d.x = x;
      const Graph g = d.graph();
      support::Problem problem(g, 5, support::Fill::plain, [&](support::BoundMemory& memory) {
        const TensorId w = g.find_tensor("w"), scale = g.find_tensor("scale");
        const double nan = std::numeric_limits<double>::quiet_NaN();
        const double infinity = std::numeric_limits<double>::infinity();
        for (const std::int64_t at : {0, 201, 4020, 70399})
          write_element(g.tensor(w), memory.data(w), at, nan);
        if (stored == e5m2) {
          write_element(g.tensor(w), memory.data(w), 5, infinity);
          write_element(g.tensor(w), memory.data(w), 310, -infinity);
        }
        write_element(g.tensor(scale), memory.data(scale), 20, nan);
      });
      const auto outline = build_plan(g, device, {}, nullptr, false);
      ASSERT_EQ(outline->steps.size(), 1);
      const Config config = gemm_sm90_engine().configs(outline->steps[0].region, device).at(0);
      const std::vector<SavedChoice> choice = {{"cuda.gemm_sm90", config.knobs}};
      EXPECT_EQ(problem.run(*build_plan(g, device, {.guard = true}, &choice, true)), "");
    }
}

}  // namespace
}  // namespace ashlar::cuda
