// The pointwise engines on a GPU, real or emulated.
#include "cuda/gpu_check.hpp"
#include "graph/pointwise_traits.hpp"

namespace ashlar::cuda {
namespace {

constexpr std::string_view kPointwiseEngine = "cuda.pointwise";

class GpuPointwise : public GpuTest {};

Value identity(Graph& graph, Value x) {
  const Value operands[] = {x};
  return graph.pointwise(PointwiseMode::identity, operands);
}

// From f64 to every type and back, special values too: rounding, saturation, NaN.
TEST_F(GpuPointwise, EveryDtypeIsConverted) {
  Graph narrow, widen;
  const Value x = narrow.input("x", {37, 80}, f64);
  for (const DType dtype : kAllDTypes) {
    if (is_complex(dtype)) continue;
    const std::string name(to_string(dtype));
    narrow.output("y_" + name, identity(narrow, x), {.dtype = dtype});
    const Value input = widen.input("x_" + name, {37, 80}, dtype);
    widen.output("y_" + name, identity(widen, input), {.dtype = f64});
  }
  for (const std::int64_t offset : {0, 8})
    for (const support::Fill fill : {support::Fill::plain, support::Fill::special}) {
      expect_agrees(narrow, kPointwiseEngine, {.fill = fill, .offset = offset});
      expect_agrees(widen, kPointwiseEngine, {.fill = fill, .offset = offset});
    }
}

// Whole vectors, in which one instruction converts two floats.
TEST_F(GpuPointwise, PackedConversions) {
  Graph graph;
  const Value x = graph.input("x", {37, 80}, f32);
  for (const DType dtype : {f16, bf16, e4m3, e5m2})
    graph.output("y_" + std::string(to_string(dtype)), identity(graph, x), {.dtype = dtype});
  const Value half = graph.input("half", {37, 80}, bf16);
  graph.output("wide", identity(graph, half), {.dtype = f32});
  for (const support::Fill fill : {support::Fill::plain, support::Fill::special})
    expect_agrees(graph, kPointwiseEngine, {.fill = fill});
}

// Rows that are not a multiple of a vector, or of a byte.
TEST_F(GpuPointwise, EveryDtypeInOddRows) {
  for (const DType dtype : {f64, f32, f16, bf16, e4m3, i32, i8, u8, i4, boolean}) {
    SCOPED_TRACE(to_string(dtype));
    Graph graph;
    const Value x = graph.input("x", {7, 29}, dtype), b = graph.input("b", {7, 1}, dtype);
    graph.output("y", pointwise(PointwiseMode::max, x, b), {.dtype = dtype});
    expect_agrees(graph, kPointwiseEngine);
    expect_agrees(graph, kPointwiseEngine, {.offset = 8});
  }
}

TEST_F(GpuPointwise, BroadcastsStridesScalarsAndIndices) {
  Graph graph;
  const Value x = graph.input("x", {3, 16, 5, 7}, bf16, channels_last);
  const Value bias = graph.input("bias", {1, 16, 1, 1}, f32);
  const Value scale = graph.scalar("scale", f32, 4);
  const Value odd = graph.input("odd", {3, 16, 5, 7}, f16, Layout(Dims{2500, 150, 30, 2}));
  const Value operands[] = {x};
  const Value index = graph.pointwise(PointwiseMode::gen_index, operands, Pointwise{.axis = 1});
  const Value y = gelu(x + bias) * scale + odd + index;
  graph.output("y", y, {.dtype = bf16, .layout = channels_last});
  graph.output("z", y * 2.0, {.dtype = f32});
  graph.output("mask", pointwise(PointwiseMode::cmp_gt, y, bias), {.dtype = boolean});
  for (const std::int64_t offset : {0, 4, 16})
    expect_agrees(graph, kPointwiseEngine, {.offset = offset});
}

// Operands contiguous along rows and along columns, in full and partial tiles.
TEST_F(GpuPointwise, TransposedOperands) {
  for (const DType dtype : {f32, f16, u8}) {
    SCOPED_TRACE(to_string(dtype));
    Graph graph;
    const Value x = graph.input("x", {3, 70, 133}, dtype);
    const Value t = graph.input("t", {3, 70, 133}, dtype, Layout(Dims{9310, 1, 70}));
    const Value row = graph.input("row", {1, 70, 1}, f32);
    graph.output("y", relu(x + t) + row, {.dtype = dtype});
    graph.output("z", t * 2.0, {.dtype = f32, .layout = Layout(Dims{9310, 1, 70})});
    for (const std::string_view engine : {"cuda.pointwise", "cuda.pointwise_tiled"})
      for (const std::int64_t offset : {0, 4}) expect_agrees(graph, engine, {.offset = offset});
  }
}

// Every mode, and the sum of all results, in few launches.
TEST_F(GpuPointwise, EveryMode) {
  Graph graph;
  const Value x = graph.input("x", {5, 66}, f32), b = graph.input("b", {5, 66}, f32);
  const Value predicate = graph.input("predicate", {5, 66}, boolean);
  Value sum = x;
  for (int m = 0; m < kPointwiseModeCount; ++m) {
    const auto mode = static_cast<PointwiseMode>(m);
    if (is_bitwise(mode)) continue;
    std::vector<Value> operands = {x};
    if (operand_count(mode) > 1) operands.push_back(b);
    if (operand_count(mode) > 2) operands.push_back(predicate);
    const Value y = graph.pointwise(mode, operands, {.alpha1 = 0.5});
    graph.output("y" + std::to_string(m), y, {.dtype = gives_boolean(mode) ? boolean : f32});
    sum = sum + y * 0.125;
  }
  graph.output("sum", sum);
  expect_agrees(graph, kPointwiseEngine);
  expect_agrees(graph, kPointwiseEngine, {.fill = support::Fill::special, .offset = 4});
}

TEST_F(GpuPointwise, BitwiseModes) {
  for (const DType dtype : {i64, i32, u32, i8, u8, i4, u4, boolean}) {
    SCOPED_TRACE(to_string(dtype));
    Graph graph;
    const Value x = graph.input("x", {5, 66}, dtype), b = graph.input("b", {5, 66}, dtype);
    const Value count = graph.input("count", {1, 66}, i32);
    for (const PointwiseMode mode :
         {PointwiseMode::bit_and, PointwiseMode::bit_or, PointwiseMode::bit_xor})
      graph.output("y" + std::to_string(static_cast<int>(mode)), pointwise(mode, x, b));
    graph.output("not", pointwise(PointwiseMode::bit_not, x));
    if (dtype != boolean) {
      graph.output("left", pointwise(PointwiseMode::shift_left, x, count));
      graph.output("right", pointwise(PointwiseMode::shift_right, x, count));
    }
    for (const std::int64_t offset : {0, 4})
      expect_agrees(graph, kPointwiseEngine, {.offset = offset});
  }
}

TEST_F(GpuPointwise, Expansions) {
  for (const DType dtype : {f32, f16, i64, boolean}) {
    SCOPED_TRACE(to_string(dtype));
    Graph graph;
    graph.output("rows", expand(graph.input("x", {1, 24}, dtype), {3, 5, 24}));
    graph.output("columns", expand(graph.input("b", {5, 1}, dtype), {5, 33}));
    graph.output("one", full(graph, {7, 16}, 1.0, dtype));
    for (const std::int64_t offset : {0, 4})
      expect_agrees(graph, kPointwiseEngine, {.offset = offset});
  }
  Graph graph;
  const Value x = graph.input("x", {6, 16}, f32);
  graph.output("counted", iota(graph, {6, 16}, 0, f32, 1.0, 0.5) * tril(x, 2));
  graph.output("hot", one_hot(graph.input("index", {9}, i32), 5, f16));
  expect_agrees(graph, kPointwiseEngine);
}

// Empty tensors, one element, rank 8.
TEST_F(GpuPointwise, UnusualShapes) {
  for (const Dims& dims :
       {Dims{0, 3}, Dims{1}, Dims{1, 1, 1}, Dims{2, 1, 3, 1, 2, 2, 1, 3}, Dims{70000}}) {
    SCOPED_TRACE(to_string(dims));
    Graph graph;
    const Value x = graph.input("x", dims, f16);
    graph.output("y", relu(x) + 1.0, {.dtype = f32});
    expect_agrees(graph, kPointwiseEngine);
  }
}

}  // namespace
}  // namespace ashlar::cuda
