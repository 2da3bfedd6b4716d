// Reshape and concat as copies.
#include "cpu/plan_check.hpp"

namespace ashlar::cpu {
namespace {

TEST(DataMovement, ReshapeThatNoViewExpresses) {
  for (DType dtype : kAllDTypes) {
    if (is_complex(dtype)) continue;  // supported by matmul only
    Graph graph;
    Value x = graph.input("x", {6, 10, 14}, dtype, Layout(Dims{1, 6, 60}));
    graph.output("y", graph.reshape(x, {21, 40}));
    PlanCheck plan(std::move(graph));
    plan.expect_agrees("cpu.data_movement");
  }
}

TEST(DataMovement, ConcatAlongEveryAxis) {
  for (std::int64_t axis : {0, 1, 2})
    for (DType dtype : {f32, f16, i64, boolean}) {
      Graph graph;
      std::vector<Value> inputs;
      for (std::int64_t part = 0; part < 4; ++part) {
        Dims dims{3, 5, 9};
        dims[static_cast<int>(axis)] = part * 2;  // the first is empty
        inputs.push_back(graph.input("x" + std::to_string(part), dims, dtype));
      }
      graph.output("y", graph.concat(inputs, axis));
      PlanCheck plan(std::move(graph));
      plan.expect_agrees("cpu.data_movement");
    }
}

TEST(DataMovement, ConcatFusedWithWhatFollows) {
  Graph graph;
  const Value parts[] = {graph.input("a", {2, 3, 8}, bf16), graph.input("b", {2, 4, 8}, bf16)};
  Value scale = graph.input("scale", {1, 7, 1}, f32);
  graph.output("y", gelu(graph.concat(parts, 1) * scale));
  PlanCheck plan(std::move(graph));
  plan.expect_agrees("cpu.data_movement");
}

}  // namespace
}  // namespace ashlar::cpu
