// Layout copies: transposes and runs of bytes.
#include "cpu/plan_check.hpp"
#include "cpu/without_caches.hpp"

namespace ashlar::cpu {
namespace {

void check(const Dims& dims, DType dtype, const Layout& from, const Layout& to,
           const Device& device) {
  SCOPED_TRACE(testing::Message() << to_string(dims) << " " << to_string(dtype));
  Graph graph;
  const Value operands[] = {graph.input("x", dims, dtype, from)};
  graph.output("y", graph.pointwise(PointwiseMode::identity, operands, {}, {.layout = to}));
  PlanCheck plan(std::move(graph));
  plan.expect_agrees("cpu.layout_copy", {}, device);
}

TEST(LayoutCopy, TransposesOfEveryElementSize) {
  for (const Device& device : {Device::cpu(), without_caches()})
    for (const DType dtype : {i8, e4m3, f16, bf16, f32, i32, f64, i64}) {
      check({2, 3, 5, 7}, dtype, row_major, channels_last, device);
      check({1, 64, 16, 8}, dtype, row_major, channels_last, device);
      check({3, 67, 9, 15}, dtype, channels_last, row_major, device);
      check({130, 71}, dtype, row_major, Layout(Dims{1, 133}), device);
      check({2, 129, 200}, dtype, Layout(Dims{200 * 131, 1, 131}), row_major, device);
    }
}

TEST(LayoutCopy, RunsOfBytes) {
  for (const Device& device : {Device::cpu(), without_caches()})
    for (const DType dtype : {u8, f16, f32, f64}) {
      check({5, 3, 33}, dtype, row_major, Layout(Dims{33, 200, 1}), device);
      check({2, 10007}, dtype, row_major, Layout(Dims{20001, 1}), device);
    }
}

TEST(LayoutCopy, TransposeAndSliceAreCopiesOfViews) {
  Graph graph;
  const Value x = graph.input("x", {6, 40, 90}, f32);
  graph.output("turned", graph.transpose(x, {2, 0, 1}, {.layout = row_major}));
  PlanCheck plan(std::move(graph));
  plan.expect_agrees("cpu.layout_copy");
}

TEST(LayoutCopy, ArithmeticAndNarrowElementsAreNotCopies) {
  Graph graph;
  const Value x = graph.input("x", {6, 40}, f32);
  graph.output("y", relu(x));
  graph.output("half", x, {.dtype = f16});
  PlanCheck plan(std::move(graph));
  plan.expect_agrees("cpu.pointwise");
}

}  // namespace
}  // namespace ashlar::cpu
