// cuda.gemm_sm90 with operands computed by producer warps: kernels compile without spills, and
// small ones agree with the oracle.
#include <array>

#include "api/backends.hpp"
#include "cuda/engines/engines.hpp"
#include "engine_agrees.hpp"
#include "engine_compiles.hpp"

namespace ashlar::cuda {
namespace {

struct PrologueShape {
  std::int64_t rows = 4096, columns = 4096, depth = 4096;
};
constexpr PrologueShape kSmallPrologue = {100, 72, 144};

// Which axis of an operand is contiguous.
enum class Along : std::uint8_t { depth, rows };

// b [k, columns] of the type, times a scale per column, as a bf16 tensor that is never stored.
Value weights(Graph& g, const PrologueShape& shape, DType stored, Along along, DType dtype = bf16) {
  const bool turned = along == Along::depth;
  const Value stored_b =
      turned ? g.transpose(g.input("b", {shape.columns, shape.depth}, stored), {1, 0})
             : g.input("b", {shape.depth, shape.columns}, stored);
  const Value scale = g.input("scale", {1, shape.columns}, f32);
  return g.pointwise(PointwiseMode::mul, std::array{stored_b, scale}, {}, {.dtype = dtype});
}

Graph dequantized(const PrologueShape& shape, DType stored, Along along) {
  Graph g;
  const Value a = g.input("a", {shape.rows, shape.depth}, bf16);
  g.output("c", g.matmul(a, weights(g, shape, stored, along), {.dtype = bf16}));
  return g;
}

// fp8 operands, each times one scale, as f32 tensors that are never stored.
Graph scaled_fp8(const PrologueShape& shape, DType of_a, DType of_b, Along b_along) {
  Graph g;
  const auto scaled = [&](const Value& x, const char* scale) {
    return g.pointwise(PointwiseMode::mul, std::array{x, g.input(scale, {1, 1}, f32)}, {},
                       {.dtype = f32});
  };
  const Value a = g.input("a", {shape.rows, shape.depth}, of_a);
  const Value b = b_along == Along::rows
                      ? g.input("b", {shape.depth, shape.columns}, of_b)
                      : g.transpose(g.input("b", {shape.columns, shape.depth}, of_b), {1, 0});
  g.output("c", g.matmul(scaled(a, "scale_a"), scaled(b, "scale_b"), {.dtype = f32}));
  return g;
}

// relu(a * scale + bias) times b.
Graph scaled_and_clipped(const PrologueShape& shape) {
  Graph g;
  const Value a = g.input("a", {shape.rows, shape.depth}, bf16);
  const Value scale = g.input("scale", {1, shape.depth}, f32),
              bias = g.input("bias", {1, shape.depth}, f32);
  const Value b = g.input("b", {shape.depth, shape.columns}, bf16);
  g.output("c", g.matmul(relu(a * scale + bias), b));
  return g;
}

Graph plain(const PrologueShape& shape, DType of_a, DType of_b, Along a_along, Along b_along,
            DType result = f32) {
  Graph g;
  const Value a = a_along == Along::depth
                      ? g.input("a", {shape.rows, shape.depth}, of_a)
                      : g.transpose(g.input("a", {shape.depth, shape.rows}, of_a), {1, 0});
  const Value b = b_along == Along::rows
                      ? g.input("b", {shape.depth, shape.columns}, of_b)
                      : g.transpose(g.input("b", {shape.columns, shape.depth}, of_b), {1, 0});
  g.output("c", g.matmul(a, b, {.dtype = result, .compute = f32}));
  return g;
}

class GemmSm90Prologue : public testing::Test {
 protected:
  void SetUp() override {
    if (!nvrtc().is_open) GTEST_SKIP() << nvrtc().reason;
  }
};

TEST(GemmSm90Plans, PrologueIsFused) {
  const auto steps = [](const Graph& graph) {
    return build_plan(graph, Device::named("h200").props(), {}, nullptr, false)->steps.size();
  };
  EXPECT_EQ(steps(dequantized({}, i4, Along::depth)), 1);
  EXPECT_EQ(steps(scaled_and_clipped({})), 1);
}

// Their scales multiply the accumulators, so that the operands are exact in bf16.
TEST(GemmSm90Plans, ScaledFp8IsMultipliedWithoutTf32) {
  const auto plan =
      build_plan(scaled_fp8({}, e4m3, e5m2, Along::depth), Device::named("h200").props(),
                 {.allow_tf32 = false}, nullptr, false);
  ASSERT_EQ(plan->steps.size(), 1);
  EXPECT_EQ(plan->steps[0].choice.engine->id(), "cuda.gemm_sm90");
  EXPECT_FALSE(plan->notes.tf32);
  EXPECT_FALSE(plan->notes.reduced_precision_accumulation);
}

TEST_F(GemmSm90Prologue, CompileWithoutSpills) {
  for (const DType stored : {i8, i4, e4m3})
    expect_compiles(gemm_sm90_engine(), dequantized({}, stored, Along::depth), {kHopper});
  expect_compiles(gemm_sm90_engine(), dequantized({}, i8, Along::rows), {kHopper});
  expect_compiles(gemm_sm90_engine(), scaled_and_clipped({}), {kHopper});
  expect_compiles(gemm_sm90_engine(), scaled_fp8({}, e4m3, e5m2, Along::depth), {kHopper});
  expect_compiles(gemm_sm90_engine(), plain({}, f32, f32, Along::depth, Along::rows), {kHopper});
}

class GpuGemmSm90Prologue : public testing::Test {
 protected:
  void SetUp() override {
    if (device_count() == 0) GTEST_SKIP() << driver().reason;
  }
};

TEST_F(GpuGemmSm90Prologue, Weights) {
  for (const DType stored : {i8, i4, e4m3})
    for (const Along along : {Along::depth, Along::rows})
      expect_agrees(gemm_sm90_engine(), dequantized(kSmallPrologue, stored, along));
}
TEST_F(GpuGemmSm90Prologue, ScaledFp8) {
  for (const DType of_a : {e4m3, e5m2})
    for (const Along along : {Along::depth, Along::rows})
      expect_agrees(gemm_sm90_engine(), scaled_fp8(kSmallPrologue, of_a, e4m3, along));
}
TEST_F(GpuGemmSm90Prologue, ScaledAndClipped) {
  expect_agrees(gemm_sm90_engine(), scaled_and_clipped(kSmallPrologue));
}
TEST_F(GpuGemmSm90Prologue, TransposedOperands) {
  for (const Along a : {Along::depth, Along::rows}) {
    expect_agrees(gemm_sm90_engine(), plain(kSmallPrologue, f32, f32, a, Along::rows));
    expect_agrees(gemm_sm90_engine(), plain(kSmallPrologue, e4m3, e5m2, a, Along::rows));
  }
  expect_agrees(gemm_sm90_engine(), plain(kSmallPrologue, i8, i8, Along::depth, Along::rows));
}
TEST_F(GpuGemmSm90Prologue, TypesThatDiffer) {
  expect_agrees(gemm_sm90_engine(), plain(kSmallPrologue, bf16, i8, Along::depth, Along::depth));
  expect_agrees(gemm_sm90_engine(), plain(kSmallPrologue, f16, bf16, Along::depth, Along::rows));
}
// Row, column and K lengths per batch; one is too long, one is 0.
TEST_F(GpuGemmSm90Prologue, Lengths) {
  const auto graph = [](bool of_rows, bool of_depth) {
    Graph g;
    Matmul op;
    op.padding_value = 2.5;
    std::vector<Operand<Matmul>> operands = {{Matmul::a, g.input("a", {2, 2, 70, 48}, bf16)},
                                             {Matmul::b, g.input("b", {2, 2, 48, 72}, bf16)}};
    if (of_rows) {
      operands.push_back({Matmul::m_override, g.input("rows", {2, 2, 1, 1}, i32)});
      operands.push_back({Matmul::n_override, g.input("columns", {2, 2, 1, 1}, i32)});
    }
    if (of_depth) operands.push_back({Matmul::k_override, g.input("depths", {2, 2, 1, 1}, i32)});
    g.output("c", relu(g.apply(op, operands, {Matmul::c})));
    return g;
  };
  const DeviceProps device = Device::named("cuda:0").props();
  for (const bool of_rows : {false, true})
    for (const bool of_depth : {false, true}) {
      const Graph g = graph(of_rows, of_depth);
      support::Problem problem(g, 5, support::Fill::plain, [&](support::BoundMemory& memory) {
        const auto set = [&](const char* name, const std::array<double, 4>& values) {
          const TensorId id = g.find_tensor(name);
          for (std::int64_t i = 0; id != kNoTensor && i < 4; ++i)
            write_element(g.tensor(id), memory.data(id), i, values[static_cast<std::size_t>(i)]);
        };
        set("rows", {70, 33, 0, 1000});
        set("columns", {71, 72, 5, 40});
        set("depths", {48, 0, 17, 31});
      });
      const auto outline = build_plan(g, device, {}, nullptr, false);
      ASSERT_EQ(outline->steps.size(), 1);
      const Region& region = outline->steps[0].region;
      ASSERT_TRUE(bool(gemm_sm90_engine().supports(region, device)));
      const Config config = gemm_sm90_engine().configs(region, device).at(0);
      const std::vector<SavedChoice> choice = {{"cuda.gemm_sm90", config.knobs}};
      EXPECT_EQ(problem.run(*build_plan(g, device, {.guard = true}, &choice, true)), "");
    }
}
TEST_F(GpuGemmSm90Prologue, AnyExtents) {
  expect_agrees(gemm_sm90_engine(), plain({77, 51, 33}, bf16, bf16, Along::rows, Along::depth));
  expect_agrees(gemm_sm90_engine(), dequantized({77, 51, 33}, i4, Along::depth));
  expect_agrees(gemm_sm90_engine(), plain({67, 1, 31}, f32, f32, Along::depth, Along::rows));
  expect_agrees(gemm_sm90_engine(), plain({67, 7, 32}, bf16, i8, Along::depth, Along::rows));
}

}  // namespace
}  // namespace ashlar::cuda
