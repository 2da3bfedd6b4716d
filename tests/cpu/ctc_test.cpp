// CTC loss and gradient.
#include "cpu/plan_check.hpp"

namespace ashlar::cpu {
namespace {

struct CtcCase {
  Dims x;
  std::int64_t longest;
  CtcLoss op = {};
  DType dtype = f32;
  bool flat = false;
  Layout layout = row_major;
};

// Labels cycle through the classes, some of them repeated; lengths differ.
PlanCheck make(const CtcCase& c, bool gradient = true) {
  const std::int64_t batch = c.x[1], classes = c.x[2];
  Graph graph;
  const Value x = graph.input("x", c.x, c.dtype, c.layout);
  const Dims dims = c.flat ? Dims{batch * c.longest} : Dims{batch, c.longest};
  const bool skip = c.op.padding == CtcPadding::skip;
  const std::vector<Operand<CtcLoss>> operands = {
      {CtcLoss::x, x},
      {CtcLoss::labels, graph.input("labels", dims, i32)},
      {CtcLoss::label_lengths, graph.input("label_lengths", {batch}, i32)},
      {CtcLoss::input_lengths, graph.input("input_lengths", {batch}, i64)},
      {CtcLoss::previous, skip ? graph.input("previous", c.x, c.dtype) : Value()}};
  std::vector<Wanted<CtcLoss>> wanted = {CtcLoss::loss};
  if (gradient) wanted.push_back(CtcLoss::gradient);
  const auto results = graph.apply(c.op, operands, wanted);
  graph.output("loss", results[CtcLoss::loss]);
  if (gradient) graph.output("gradient", results[CtcLoss::gradient]);
  PlanCheck plan(std::move(graph));
  if (c.op.input == CtcInput::probabilities) plan.fill("x", 0.05, 1.0);
  std::vector<double> labels, label_lengths, input_lengths;
  for (std::int64_t i = 0; i < batch * c.longest; ++i)
    labels.push_back(static_cast<double>(i / 2 * 7 % classes));
  for (std::int64_t n = 0; n < batch; ++n) {
    label_lengths.push_back(static_cast<double>(n % 3 == 2 ? c.longest / 2 : c.longest));
    input_lengths.push_back(static_cast<double>(n % 2 == 1 ? c.x[0] * 3 / 4 : c.x[0]));
  }
  plan.set("labels", labels);
  plan.set("label_lengths", label_lengths);
  plan.set("input_lengths", input_lengths);
  return plan;
}

TEST(Ctc, ManySequences) {
  for (bool flat : {false, true})
    for (CtcInput input : {CtcInput::logits, CtcInput::probabilities}) {
      CtcCase c{{30, 13, 21}, 9};
      c.flat = flat;
      c.op.input = input;
      c.op.blank = 20;
      make(c).expect_agrees("cpu.ctc");
      make(c, false).expect_agrees("cpu.ctc");
      c.op.padding = CtcPadding::skip;
      make(c).expect_agrees("cpu.ctc");
    }
}

TEST(Ctc, LongAndWide) {
  make({{260, 3, 7}, 100}).expect_agrees("cpu.ctc");
  make({{700, 2, 4}, 300}).expect_agrees("cpu.ctc");  // more than 256 labels
  make({{12, 2, 5000}, 5}).expect_agrees("cpu.ctc");
}

TEST(Ctc, DtypesAndLayouts) {
  for (DType dtype : kFloats)
    for (const Layout& layout : {row_major, Layout(Dims{1, 20, 60})}) {
      CtcCase c{{20, 3, 8}, 4};
      c.dtype = dtype;
      c.layout = layout;
      make(c).expect_agrees("cpu.ctc");
    }
}

TEST(Ctc, WrongLabelsAndLengths) {
  for (bool zero : {false, true}) {
    CtcCase c{{6, 6, 4}, 2};
    c.op.zero_infinity = zero;
    PlanCheck plan = make(c);
    plan.set("labels", {1, 2, 9, 1, -5, 1, 3, 3, 1000000, 2, 2, 1});
    plan.set("label_lengths", {2, 2, 1, 2, -7, 2000000000});
    plan.set("input_lengths", {6, 6, 6, 2, 100, -1});
    plan.expect_agrees("cpu.ctc");
    const double impossible = zero ? 0.0 : std::numeric_limits<double>::infinity();
    EXPECT_EQ(plan.get("loss")[1], impossible);
    EXPECT_EQ(plan.get("loss")[3], impossible);
    EXPECT_EQ(plan.get("loss")[5], impossible);
  }
}

TEST(Ctc, NaNsAndInfinities) {
  constexpr double kInf = std::numeric_limits<double>::infinity(),
                   kNaN = std::numeric_limits<double>::quiet_NaN();
  for (double special : {kNaN, kInf, -kInf})
    for (CtcInput input : {CtcInput::logits, CtcInput::probabilities}) {
      CtcCase c{{4, 2, 3}, 2};
      c.op.input = input;
      PlanCheck plan = make(c);
      std::vector<double> x(24, 0.5);
      x[7] = special;
      plan.set("x", x);
      plan.expect_agrees("cpu.ctc");
    }
}

TEST(Ctc, Fused) {
  Graph graph;
  const Value x = graph.input("x", {9, 3, 6}, f16), bias = graph.input("bias", {1, 1, 6}, f32);
  const auto results = graph.apply(CtcLoss{.zero_infinity = true},
                                   {{CtcLoss::x, x + bias},
                                    {CtcLoss::labels, graph.input("labels", {3, 3}, i32)},
                                    {CtcLoss::label_lengths, graph.input("ll", {3}, i32)},
                                    {CtcLoss::input_lengths, graph.input("il", {3}, i32)}},
                                   {CtcLoss::loss, CtcLoss::gradient});
  graph.output("loss", results[CtcLoss::loss] * graph.input("weight", {3}, f32));
  graph.output("gradient", results[CtcLoss::gradient]);
  PlanCheck plan(std::move(graph));
  plan.set("labels", {1, 2, 3, 4, 4, 5, 1, 1, 1});
  plan.set("ll", {3, 2, 1});
  plan.set("il", {9, 8, 7});
  plan.expect_agrees("cpu.ctc");
}

}  // namespace
}  // namespace ashlar::cpu
