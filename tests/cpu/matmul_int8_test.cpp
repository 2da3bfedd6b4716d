// int8 matmul: signs, layouts, result types, fusion.
#include <array>

#include "cpu/plan_check.hpp"

namespace ashlar::cpu {
namespace {

// Stride 2 along both axes.
Layout spread(const Dims& dims) {
  Dims wide = dims;
  wide[dims.rank() - 1] *= 2;
  wide[dims.rank() - 2] *= 2;
  Dims strides = row_major.strides_for(wide);
  strides[dims.rank() - 1] *= 2;
  strides[dims.rank() - 2] *= 2;
  return strides;
}

constexpr std::pair<DType, DType> kPairs[] = {{u8, i8}, {i8, i8}, {u8, u8}, {i8, u8},
                                              {i4, u4}, {i8, i4}, {u4, i8}};

struct MatmulInt8Case {
  Dims a, b;
  DType left = i8, right = i8, result = i32;
  Layout a_layout = row_major, b_layout = row_major, c_layout = row_major;
};

void check(const MatmulInt8Case& c, CompileOptions options = {}) {
  SCOPED_TRACE(testing::Message() << to_string(c.a) << " " << to_string(c.left) << " x "
                                  << to_string(c.b) << " " << to_string(c.right) << " -> "
                                  << to_string(c.result));
  Graph graph;
  const Value a = graph.input("a", c.a, c.left, c.a_layout);
  const Value b = graph.input("b", c.b, c.right, c.b_layout);
  graph.output("c", graph.matmul(a, b, {.compute = i32}),
               {.dtype = c.result, .layout = c.c_layout});
  PlanCheck plan(std::move(graph));
  plan.fill("a", -200, 300);  // saturated: many values are extreme
  plan.fill("b", -200, 300);
  // Empty operands cost the same in every engine.
  const bool empty = element_count(c.a) == 0 || element_count(c.b) == 0;
  plan.expect_agrees(empty ? "cpu.matmul_" : "cpu.matmul_int8", options);
}

TEST(MatmulInt8, SignsAndK) {
  for (const auto& [left, right] : kPairs)
    for (const std::int64_t k : {1, 2, 4, 77, 700})
      check({.a = {2, 50, k}, .b = {1, k, 70}, .left = left, .right = right});
}

TEST(MatmulInt8, Layouts) {
  for (const auto& [left, right] : kPairs)
    for (int transposes = 0; transposes < 8; ++transposes) {
      const Dims a{3, 37, 52}, b{3, 52, 67};
      check({.a = a,
             .b = b,
             .left = left,
             .right = right,
             .a_layout = transposes & 1 ? transposed(a) : row_major,
             .b_layout = transposes & 2 ? transposed(b) : row_major,
             .c_layout = transposes & 4 ? transposed(Dims{3, 37, 67}) : row_major});
    }
  const Dims a{2, 19, 22}, b{2, 22, 40};
  check({.a = a, .b = b, .a_layout = spread(a), .b_layout = spread(b)});
}

TEST(MatmulInt8, ResultTypes) {
  for (const DType result : {i8, u8, i64, f32, f16})
    for (const std::int64_t columns : {5, 64, 75})
      check({.a = {33, 12}, .b = {12, columns}, .left = u8, .result = result});
}

TEST(MatmulInt8, NarrowAndTall) {
  for (const auto& [left, right] : {kPairs[0], kPairs[1], kPairs[2]}) {
    check({.a = {1, 300}, .b = {300, 270}, .left = left, .right = right});
    check({.a = {270, 300}, .b = {300, 1}, .left = left, .right = right});
    check({.a = {2000, 8}, .b = {8, 3}, .left = left, .right = right});
    check({.a = {3, 4096}, .b = {4096, 100}, .left = left, .right = right});
  }
}

// Several blocks and threads; row strides that are a multiple of a cache way.
TEST(MatmulInt8, BlocksAndThreads) {
  check({.a = {300, 4096}, .b = {4096, 200}, .left = u8});
  check({.a = {700, 260}, .b = {260, 390}, .left = i8});
  check({.a = {700, 260}, .b = {260, 390}, .left = i8, .right = u8});
  check({.a = {5, 120, 64}, .b = {5, 64, 120}, .left = u8});
  check({.a = {2, 1, 90, 130}, .b = {1, 3, 130, 110}, .left = i8, .right = u8});
}

TEST(MatmulInt8, ZeroExtents) {
  check({.a = {4, 0}, .b = {0, 5}});
  check({.a = {0, 4}, .b = {4, 5}});
  check({.a = {0, 3, 4}, .b = {0, 4, 5}});
}

TEST(MatmulInt8, QuantisedEpilogue) {
  // The larger K has sums that f32 cannot represent.
  for (const std::int64_t k : {64, 1100})
    for (const DType result : {i8, u8, f32}) {
      Graph graph;
      const Value a = graph.input("a", {90, k}, u8), b = graph.input("b", {k, 133}, i8);
      const Value scale = graph.input("scale", {1, 133}, f32),
                  bias = graph.input("bias", {1, 133}, f32);
      const Value sum = graph.matmul(a, b, {.dtype = i32, .compute = i32});
      const Value scaled =
          graph.pointwise(PointwiseMode::mul, std::array{sum, scale}, {}, {.dtype = f32});
      graph.output("y", relu(scaled + bias), {.dtype = result});
      PlanCheck plan(std::move(graph));
      plan.fill("a", 0, 255);
      plan.fill("b", k == 64 ? -128 : 100, 127);
      plan.fill("scale", 0, 0.1 / static_cast<double>(k));
      plan.expect_agrees("cpu.matmul_int8");
    }
}

// An intermediate narrower than 16 bits is rounded and saturated even where it stays in a register.
TEST(MatmulInt8, NarrowIntermediates) {
  for (const DType narrow : {e4m3, e5m2, i8, u8, i4})
    for (const std::int64_t k : {3, 64, 1100}) {
      SCOPED_TRACE(std::string(to_string(narrow)) + ", depth " + std::to_string(k));
      Graph graph;
      const Value a = graph.input("a", {9, k}, i8), b = graph.input("b", {k, 33}, i8);
      const Value sum = graph.matmul(a, b, {.dtype = narrow, .compute = i32});
      graph.output("y", graph.pointwise(PointwiseMode::mul,
                                        std::array{sum, graph.input("scale", {1, 33}, f32)}, {},
                                        {.dtype = f32}));
      PlanCheck plan(std::move(graph));
      plan.fill("a", -9, 9);
      plan.fill("b", -9, 9);
      plan.expect_agrees("cpu.matmul_int8");
    }
}

// Integers after the sum stay exact.
TEST(MatmulInt8, IntegerEpilogue) {
  Graph graph;
  const Value a = graph.input("a", {90, 1100}, u8), b = graph.input("b", {1100, 133}, i8);
  const Value shift = graph.input("shift", {1, 133}, i32);
  const Value sum = graph.matmul(a, b, {.dtype = i32, .compute = i32});
  graph.output("y", graph.pointwise(PointwiseMode::add, std::array{sum, shift}, {},
                                    {.dtype = i32, .compute = i32}));
  PlanCheck plan(std::move(graph));
  plan.fill("a", 0, 255);
  plan.fill("b", 100, 127);
  plan.fill("shift", -9, 9);
  plan.expect_agrees("cpu.matmul_int8");
}

// A prologue that quantises to bytes.
TEST(MatmulInt8, QuantisedPrologue) {
  Graph graph;
  const Value x = graph.input("x", {90, 64}, f32), b = graph.input("b", {64, 133}, i8);
  const Value bytes = graph.pointwise(PointwiseMode::identity, std::array{x}, {}, {.dtype = i8});
  graph.output("y", graph.matmul(bytes, b, {.dtype = i32, .compute = i32}));
  PlanCheck plan(std::move(graph));
  plan.fill("x", -200, 200);
  plan.fill("b", -128, 127);
  plan.expect_agrees("cpu.matmul_int8");
}

TEST(MatmulInt8, WithoutScratchOtherEnginesRun) {
  Graph graph;
  const Value a = graph.input("a", {57, 300}, i8), b = graph.input("b", {300, 130}, i8);
  graph.output("c", graph.matmul(a, b, {.dtype = i32}));
  PlanCheck plan(std::move(graph));
  CompileOptions options;
  options.workspace_limit = 0;
  plan.expect_agrees("cpu.matmul_gemm", options);
}

}  // namespace
}  // namespace ashlar::cpu
