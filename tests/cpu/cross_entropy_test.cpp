// Cross-entropy in one pass over long rows of logits.
#include <cmath>

#include "cpu/plan_check.hpp"
#include "cpu/without_caches.hpp"

namespace ashlar::cpu::cross_entropy {
namespace {

struct Loss {
  Dims x = {6, 5000};
  DType dtype = f32;
  double smoothing = 0.0;
  bool mean = false;
  std::int64_t ignore_index = -100;
};

template <class Op>
Op attributes_of(const Loss& loss) {
  Op op;
  op.label_smoothing = loss.smoothing;
  op.mean = loss.mean;
  op.ignore_index = loss.ignore_index;
  return op;
}

Dims rows_of(const Loss& loss) {
  Dims rows = loss.x;
  rows[rows.rank() - 1] = 1;
  return rows;
}

Graph forward_of(const Loss& loss, const Layout& layout = row_major) {
  using Op = CrossEntropyForward;
  Graph graph;
  const auto results = graph.apply(attributes_of<Op>(loss),
                                   {{Op::x, graph.input("x", loss.x, loss.dtype, layout)},
                                    {Op::target, graph.input("target", rows_of(loss), i64)}},
                                   {Op::loss, Op::stats});
  graph.output("loss", results[Op::loss]);
  graph.output("stats", results[Op::stats]);
  return graph;
}

Graph backward_of(const Loss& loss) {
  using Op = CrossEntropyBackward;
  Graph graph;
  const DType wide = loss.dtype == f64 ? f64 : f32;
  const Dims rows = rows_of(loss), of_loss = loss.mean ? Dims::filled(rows.rank(), 1) : rows;
  graph.output("dx", graph.apply(attributes_of<Op>(loss),
                                 {{Op::x, graph.input("x", loss.x, loss.dtype)},
                                  {Op::target, graph.input("target", rows, i64)},
                                  {Op::stats, graph.input("stats", rows, wide)},
                                  {Op::dloss, graph.input("dloss", of_loss, wide)}},
                                 {Op::dx}));
  return graph;
}

// Targets at both ends, in the middle, ignored and (with `wrong`) outside.
std::vector<double> targets_of(const Loss& loss, bool wrong) {
  const double classes = static_cast<double>(loss.x[loss.x.rank() - 1]);
  const double kinds[] = {0,
                          classes - 1,
                          std::floor(classes / 2),
                          static_cast<double>(loss.ignore_index),
                          wrong ? classes : 0.0,
                          wrong ? -1.0 : 0.0};
  std::vector<double> targets;
  for (std::int64_t row = 0; row < element_count(rows_of(loss)); ++row)
    targets.push_back(kinds[row % 6]);
  return targets;
}

void check(const Loss& loss) {
  SCOPED_TRACE(testing::Message() << to_string(loss.x) << " " << to_string(loss.dtype)
                                  << (loss.mean ? " mean" : "") << " smoothing " << loss.smoothing);
  for (const bool wrong : {false, true}) {
    PlanCheck forward(forward_of(loss));
    forward.fill("x", -20.0, 20.0);
    forward.set("target", targets_of(loss, wrong));
    forward.expect_agrees("cpu.cross_entropy");
    PlanCheck backward(backward_of(loss));
    backward.fill("x", -6.0, 6.0);
    backward.fill("stats", 6.0, 9.0);
    backward.set("target", targets_of(loss, wrong));
    backward.expect_agrees("cpu.cross_entropy");
  }
}

TEST(CrossEntropy, DtypesAndOptions) {
  for (const DType dtype : kFloats)
    for (const bool mean : {false, true})
      for (const double smoothing : {0.0, 0.1})
        check({.dtype = dtype, .smoothing = smoothing, .mean = mean});
}

TEST(CrossEntropy, Shapes) {
  for (const Dims& x : {Dims{7, 1}, Dims{2, 3, 2048}, Dims{13, 2049}, Dims{9000}, Dims{300, 3}})
    check({.x = x, .mean = true});
  PlanCheck columns(forward_of({.x = {70, 40}}, Layout(Dims{1, 70})));
  columns.expect_agrees("cpu.cross_entropy");
}

// Blocks whose maxima rise, fall, and begin with nothing but -inf; a NaN and an infinity at the
// beginning of a row.
void check_running_maximum(DType dtype) {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  const Loss loss{.x = {6, 8000}, .dtype = dtype};
  PlanCheck plan(forward_of(loss));
  std::vector<double> x;
  for (int row = 0; row < 6; ++row)
    for (int c = 0; c < 8000; ++c) {
      const double rising = 0.01 * c - 40;
      const double first = row == 4 ? std::nan("") : row == 5 ? kInf : rising;
      if (row >= 4)
        x.push_back(c == 0 ? first : rising);
      else if (row == 2)
        x.push_back(c < 5000 ? -kInf : rising);
      else
        x.push_back(row == 3 && c == 7000 ? 1000 : row == 1 ? -rising : rising);
    }
  plan.set("x", x);
  plan.set("target", {10, 10, 7999, 7000, 5, 5});
  plan.expect_agrees("cpu.cross_entropy");
  const std::vector<double> values = plan.get("loss");
  EXPECT_NEAR(values[3], 0.0, 1e-6);
  EXPECT_TRUE(std::isnan(values[4]));
  EXPECT_TRUE(std::isnan(values[5]));
}

TEST(CrossEntropy, RunningMaximum) {
  for (const DType dtype : {f32, f64}) check_running_maximum(dtype);
}

TEST(CrossEntropy, InfinitiesFollowTheReference) {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  const double nan = std::nan("");
  PlanCheck plan(forward_of({.x = {5, 3}}));
  plan.set("x", {-kInf, -kInf, -kInf, -kInf, 0, 1, kInf, 0, 1, nan, 0, 1, nan, kInf, 0});
  plan.set("target", {0, 1, 1, 1, -100});
  plan.expect_agrees("cpu.cross_entropy");
  const std::vector<double> loss = plan.get("loss");
  for (std::size_t i = 0; i < loss.size(); ++i)
    EXPECT_EQ(std::isnan(loss[i]), i != 1 && i != 4) << i;
}

TEST(CrossEntropy, Fused) {
  using Op = CrossEntropyForward;
  Graph graph;
  const Value x = graph.input("x", {7, 300}, bf16), bias = graph.input("bias", {1, 300}, f32);
  const Value target = graph.input("target", {7, 1}, i32);
  const Value scale = graph.input("scale", {1, 1}, f32);
  const Value loss = graph.apply(Op{}, {{Op::x, x * 3.0 + bias}, {Op::target, target}}, {Op::loss});
  graph.output("loss", loss * scale);
  PlanCheck plan(std::move(graph));
  plan.expect_agrees("cpu.cross_entropy");
  EXPECT_EQ(compile(plan.graph(), Device::cpu()).region_count(), 1);
}

TEST(CrossEntropy, GradientsLargerThanTheCaches) {
  for (const Dims& x : {Dims{5, 33}, Dims{3, 5000}, Dims{6, 4096}}) {
    PlanCheck plan(backward_of({.x = x}));
    plan.set("target", targets_of({.x = x}, true));
    plan.expect_agrees("cpu.cross_entropy", {}, without_caches());
  }
}

}  // namespace
}  // namespace ashlar::cpu::cross_entropy
