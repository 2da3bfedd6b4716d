// Softmax and log-softmax.
#include <cmath>

#include "cpu/plan_check.hpp"
#include "cpu/without_caches.hpp"

namespace ashlar::cpu {
namespace {

void check_forward(const Dims& dims, std::int64_t axis, bool log, DType dtype,
                   const Layout& layout = row_major) {
  SCOPED_TRACE(testing::Message() << to_string(dims) << " axis " << axis << (log ? " log " : " ")
                                  << to_string(dtype));
  Graph graph;
  SoftmaxForward op;
  op.axis = axis;
  op.log = log;
  Value x = graph.input("x", dims, dtype, layout);
  Tensor y{.name = "y", .kind = TensorKind::output, .dtype = dtype};
  Tensor stats{.name = "stats", .kind = TensorKind::output};
  graph.add_node({"softmax",
                  op,
                  {x.id()},
                  {graph.add_tensor(y), graph.add_tensor(stats)},
                  dtype == f64 ? f64 : f32});
  PlanCheck plan(std::move(graph));
  plan.fill("x", -20.0, 20.0);
  plan.expect_agrees("cpu.softmax");
}

void check_backward(const Dims& dims, std::int64_t axis, bool log, DType dtype) {
  SCOPED_TRACE(testing::Message() << to_string(dims) << " axis " << axis << (log ? " log " : " ")
                                  << to_string(dtype));
  Graph graph;
  Value y = graph.input("y", dims, dtype), dy = graph.input("dy", dims, dtype);
  graph.output("dx", graph.softmax_backward(y, dy, {.axis = axis, .log = log}));
  PlanCheck plan(std::move(graph));
  plan.fill("y", log ? -5.0 : 0.0, log ? 0.0 : 1.0);
  plan.expect_agrees("cpu.softmax");
}

TEST(Softmax, EveryAxis) {
  for (bool log : {false, true})
    for (std::int64_t axis : {0, 1, 2}) {
      check_forward({5, 6, 37}, axis, log, f32);
      check_backward({5, 6, 37}, axis, log, f32);
    }
}

TEST(Softmax, DtypesAndLayouts) {
  for (DType dtype : kFloats) {
    check_forward({3, 19, 4, 5}, 1, false, dtype);
    check_forward({3, 19, 4, 5}, 1, false, dtype, channels_last);
    check_forward({3, 19, 4, 5}, 3, true, dtype, channels_last);
    check_backward({3, 19, 4, 5}, 1, false, dtype);
  }
}

TEST(Softmax, LongRows) {
  check_forward({3, 5000}, 1, false, f32);
  check_forward({5000, 3}, 0, true, f32);
  check_backward({3, 5000}, 1, false, f32);
  check_forward({2, 1}, 1, false, f32);
  check_forward({2, 0, 3}, 2, false, f32);
}

TEST(Softmax, InfinitiesFollowTheReference) {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  Graph graph;
  Value x = graph.input("x", {4, 3}, f32);
  graph.output("y", graph.softmax(x));
  PlanCheck plan(std::move(graph));
  plan.set("x", {-kInf, -kInf, -kInf, -kInf, 0, 1, kInf, 0, 1,
                 std::numeric_limits<double>::quiet_NaN(), 0, 1});
  plan.expect_agrees("cpu.softmax");
  const std::vector<double> y = plan.get("y");
  for (std::size_t i = 0; i < y.size(); ++i) EXPECT_EQ(std::isnan(y[i]), i / 3 != 1) << i;
}

TEST(Softmax, Fused) {
  Graph graph;
  Value x = graph.input("x", {7, 200}, bf16);
  Value b = graph.input("b", {1, 200}, f32);
  graph.output("y", graph.softmax(x * 3.0 + b) * b, {.dtype = f16});
  PlanCheck plan(std::move(graph));
  plan.expect_agrees("cpu.softmax");
  EXPECT_EQ(compile(plan.graph(), Device::cpu()).region_count(), 1);
}

TEST(Softmax, ResultsLargerThanTheCaches) {
  for (const bool log : {false, true})
    for (const Dims& dims : {Dims{5, 33}, Dims{3, 5000}, Dims{2, 9001}}) {
      SoftmaxAttributes attributes;
      attributes.log = log;
      Graph forward;
      forward.output("y", forward.softmax(forward.input("x", dims, f32), attributes));
      PlanCheck(std::move(forward)).expect_agrees("cpu.softmax", {}, without_caches());
      Graph backward;
      const Value y = backward.input("y", dims, f32), dy = backward.input("dy", dims, f32);
      backward.output("dx", backward.softmax_backward(y, dy, attributes));
      PlanCheck(std::move(backward)).expect_agrees("cpu.softmax", {}, without_caches());
    }
}

}  // namespace
}  // namespace ashlar::cpu
