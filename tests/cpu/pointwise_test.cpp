// Pointwise regions: broadcasts, chains, indices, streaming stores.
#include "cpu/plan_check.hpp"
#include "cpu/without_caches.hpp"

namespace ashlar::cpu {
namespace {

void check_sum(const Dims& x_dims, const Dims& b_dims, DType dtype,
               const Layout& layout = row_major) {
  SCOPED_TRACE(testing::Message() << to_string(x_dims) << " and " << to_string(b_dims) << " "
                                  << to_string(dtype));
  Graph graph;
  Value x = graph.input("x", x_dims, dtype, layout);
  Value b = graph.input("b", b_dims, dtype);
  graph.output("y", relu(x + b));
  PlanCheck plan(std::move(graph));
  plan.expect_agrees("cpu.pointwise");
}

TEST(PointwiseEngine, ShapesAndBroadcasts) {
  for (DType dtype : {f64, f32, f16, bf16, e4m3, e5m2, i32, i8}) {
    check_sum({2, 3, 5, 7}, {2, 3, 5, 7}, dtype);
    check_sum({2, 3, 5, 7}, {1, 3, 1, 1}, dtype, channels_last);
    check_sum({2, 3, 5, 7}, {2, 1, 5, 1}, dtype);
    check_sum({1, 1, 1, 7}, {4, 3, 1, 1}, dtype);
  }
  check_sum({1, 1, 1, 1}, {1, 1, 1, 1}, f32);
  check_sum({0, 3}, {1, 3}, f32);
  check_sum({100003, 1}, {1, 1}, f32);
  check_sum({4, 6, 10}, {4, 6, 10}, f32, Layout(Dims{211, 31, 3}));
  check_sum({4, 6, 10}, {4, 1, 10}, f16, Layout(Dims{1, 4, 24}));
}

TEST(PointwiseEngine, BooleansShareBytesBetweenRowsAndThreads) {
  Graph graph;
  Value x = graph.input("x", {301, 203}, f32);
  Value b = graph.input("b", {1, 203}, f32);
  Value mask = pointwise(PointwiseMode::cmp_gt, x, b);
  graph.output("mask", mask, {.dtype = boolean});
  graph.output("y", select(mask, x, b));
  PlanCheck plan(std::move(graph));
  plan.expect_agrees("cpu.pointwise");
}

TEST(PointwiseEngine, LongChainWithSeveralOutputs) {
  Graph graph;
  Value x = graph.input("x", {64, 129}, f16);
  Value scale = graph.scalar("scale", f32, 2);
  Value y = gelu(x * scale);
  graph.output("y", y, {.dtype = bf16});
  Value z = swish(y) + exp(x) - sigmoid(x) / (tanh(x) * tanh(x) + 1.0);
  graph.output("z", z, {.dtype = f32});
  PlanCheck plan(std::move(graph));
  plan.expect_agrees("cpu.pointwise");
}

TEST(PointwiseEngine, IndexAlongEveryAxis) {
  for (std::int64_t axis : {0, 1, 2}) {
    Graph graph;
    Value x = graph.input("x", {5, 6, 7}, f32);
    const Value operands[] = {x};
    Value index = graph.pointwise(PointwiseMode::gen_index, operands, Pointwise{.axis = axis});
    graph.output("y", index * 2.0 + x);
    PlanCheck plan(std::move(graph));
    plan.expect_agrees("cpu.pointwise");
  }
}

TEST(PointwiseEngine, ResultsLargerThanTheCaches) {
  for (const Dims& dims : {Dims{3, 5, 1000}, Dims{40007, 1, 1}, Dims{2, 3, 5}}) {
    Graph graph;
    Value x = graph.input("x", dims, f32);
    Value b = graph.input("b", {1, dims[1], 1}, f16);
    Value sum = x + b;
    graph.output("sum", sum, {.dtype = bf16});
    graph.output("y", gelu(sum) * 0.5);
    graph.output("positive", pointwise(PointwiseMode::cmp_gt, sum, graph.constant(0, f32, 3)),
                 {.dtype = boolean});
    PlanCheck plan(std::move(graph));
    plan.expect_agrees("cpu.pointwise", {}, without_caches());
  }
}

}  // namespace
}  // namespace ashlar::cpu
