// CTC loss, spatial transformer, im2col and tensor transform, computed manually.
#include <cmath>

#include "reference/harness.hpp"

namespace ashlar::reference {
namespace {

struct CtcGraph {
  Graph graph;
  CtcGraph(const Dims& x, const Dims& labels, const CtcLoss& op, DType dtype = f64) {
    const Value previous =
        op.padding == CtcPadding::skip ? graph.input("previous", x, dtype) : Value();
    const auto results =
        graph.apply(op,
                    {{CtcLoss::x, graph.input("x", x, dtype)},
                     {CtcLoss::labels, graph.input("labels", labels, i32)},
                     {CtcLoss::label_lengths, graph.input("label_lengths", {x[1]}, i32)},
                     {CtcLoss::input_lengths, graph.input("input_lengths", {x[1]}, i64)},
                     {CtcLoss::previous, previous}},
                    {CtcLoss::loss, CtcLoss::gradient});
    graph.output("loss", results[CtcLoss::loss]);
    graph.output("gradient", results[CtcLoss::gradient]);
  }
};

TEST(Ctc, OneStepOneLabel) {
  CtcGraph ctc({1, 1, 2}, {1, 1}, {});
  Evaluation e(ctc.graph);
  e.set("x", {0, 0});
  e.set("labels", {1});
  e.set("label_lengths", {1});
  e.set("input_lengths", {1});
  expect_result(e, "loss", {std::log(2.0)}, 1e-15);
  expect_result(e, "gradient", {0.5, -0.5}, 1e-15);
}

// Paths (1, 1), (blank, 1), (1, blank) for the first; only (1, blank, 1) for the second.
TEST(Ctc, SumsOverPaths) {
  CtcGraph ctc({3, 2, 2}, {3}, {.input = CtcInput::probabilities, .padding = CtcPadding::skip});
  Evaluation e(ctc.graph);
  e.set("x", {0.4, 0.6, 0.5, 0.5, 0.3, 0.7, 0.2, 0.8, 9, 9, 0.1, 0.9});
  e.set("labels", {1, 1, 1});  // one label, then two
  e.set("label_lengths", {1, 2});
  e.set("input_lengths", {2, 3});
  e.set("previous", {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12});
  const double p = 0.88, q = 0.5 * 0.2 * 0.9;
  expect_result(e, "loss", {-std::log(p), -std::log(q)}, 1e-14);
  expect_result(
      e, "gradient",
      {-0.7 / p, -1.0 / p, 0, -1 / 0.5, -0.6 / p, -1.0 / p, -1 / 0.2, 0, 9, 10, 0, -1 / 0.9},
      1e-13);
}

TEST(Ctc, ImpossibleSequences) {
  for (bool zero : {false, true}) {
    CtcGraph ctc({2, 4, 3}, {4, 2}, {.blank = 1, .zero_infinity = zero});
    Evaluation e(ctc.graph);
    e.fill_inputs(3);
    // Two equal labels need three steps; labels outside the classes; no step for a label.
    e.set("labels", {2, 2, 0, 3, -1, 0, 0, 2});
    e.set("label_lengths", {2, 2, 1, 1});
    e.set("input_lengths", {2, 2, 2, 0});
    expect_result(e, "loss", std::vector<double>(4, zero ? 0.0 : kInf));
    expect_result(e, "gradient", std::vector<double>(24, 0.0));
  }
}

TEST(Ctc, LengthsAreClamped) {
  CtcGraph ctc({2, 3, 2}, {3, 1}, {});
  Evaluation e(ctc.graph);
  e.set("x", std::vector<double>(12, 0.0));
  e.set("labels", {1, 1, 1});
  e.set("label_lengths", {100, -3, 1});
  e.set("input_lengths", {100, 2, -1});
  // Three of four paths spell the label; one of four is all blanks; no step at all.
  expect_result(e, "loss", {-std::log(0.75), std::log(4.0), kInf}, 1e-14);
  CtcGraph flat({2, 2, 2}, {3}, {});
  Evaluation f(flat.graph);
  f.set("x", std::vector<double>(8, 0.0));
  f.set("labels", {1, 1, 1});
  f.set("label_lengths", {1, 100});  // two labels are left
  f.set("input_lengths", {2, 2});
  expect_result(f, "loss", {-std::log(0.75), kInf}, 1e-14);
}

TEST(Ctc, LongSequencesStayFiniteAndBounded) {
  CtcGraph ctc({300, 1, 3}, {1, 120}, {}, f32);
  Evaluation e(ctc.graph);
  e.fill_inputs(5, -2.0, 2.0);
  std::vector<double> labels(120);
  for (std::size_t i = 0; i < labels.size(); ++i) labels[i] = 1.0 + static_cast<double>(i / 2 % 2);
  e.set("labels", labels);
  e.set("label_lengths", {120});
  e.set("input_lengths", {300});
  const Expected loss = e.oracle("loss");
  EXPECT_GT(loss.values[0], 50.0);
  EXPECT_GT(loss.bounds[0], 0.0);
  EXPECT_LT(loss.bounds[0], 0.02);  // grows with the number of steps, not with its exponential
  e.expect_nodes_agree();
}

TEST(GridGenerator, Identity) {
  for (bool align : {true, false}) {
    Graph g;
    const auto grid = g.apply(GridGeneratorForward{{.size = {2, 2}, .align_corners = align}},
                              {{GridGeneratorForward::theta, g.input("theta", {1, 2, 3}, f64)}},
                              {GridGeneratorForward::grid});
    g.output("grid", grid[GridGeneratorForward::grid]);
    Evaluation e(g);
    e.set("theta", {1, 0, 0, 0, 1, 0});
    const double c = align ? 1.0 : 0.5;
    expect_result(e, "grid", {-c, -c, c, -c, -c, c, c, c});
    e.set("theta", {0, 2, 3, 1, 0, -1});
    expect_result(e, "grid",
                  {3 - 2 * c, -c - 1, 3 - 2 * c, c - 1, 3 + 2 * c, -c - 1, 3 + 2 * c, c - 1});
  }
}

TEST(GridGenerator, Backward) {
  Graph g;
  const auto dtheta = g.apply(GridGeneratorBackward{},
                              {{GridGeneratorBackward::dgrid, g.input("dgrid", {1, 1, 2, 2}, f64)}},
                              {GridGeneratorBackward::dtheta});
  g.output("dtheta", dtheta[GridGeneratorBackward::dtheta]);
  Evaluation e(g);
  e.set("dgrid", {1, 2, 3, 4});
  // x is -1, 1; y is 0, the centre of its only row.
  expect_result(e, "dtheta", {2, 0, 4, 2, 0, 6});
}

std::vector<double> sampled(const GridSampleAttributes& attributes,
                            const std::vector<double>& grid) {
  Graph g;
  const auto y =
      g.apply(GridSampleForward{attributes},
              {{GridSampleForward::x, g.input("x", {1, 1, 2, 2}, f64)},
               {GridSampleForward::grid,
                g.input("grid", {1, static_cast<std::int64_t>(grid.size()) / 2, 1, 2}, f64)}},
              {GridSampleForward::y});
  g.output("y", y[GridSampleForward::y]);
  Evaluation e(g);
  e.set("x", {1, 2, 3, 4});
  e.set("grid", grid);
  e.run_nodes();
  return e.get("y");
}

TEST(GridSample, CentreAndOutside) {
  using Values = std::vector<double>;
  const auto linear = GridSampleMode::bilinear, nearest = GridSampleMode::nearest;
  EXPECT_EQ(sampled({linear, GridPadding::zeros, true}, {0, 0, -1, -1, 1, -1, 3, 3}),
            (Values{2.5, 1, 2, 0}));
  // Edges: -1 lies half an element before the first.
  EXPECT_EQ(sampled({linear, GridPadding::zeros, false}, {0, 0, -1, -1, -0.5, -0.5}),
            (Values{2.5, 0.25, 1}));
  EXPECT_EQ(sampled({linear, GridPadding::border, true}, {-9, 0, 9, 9}), (Values{2, 4}));
  EXPECT_EQ(sampled({linear, GridPadding::reflection, true}, {2, -1, -2, -1, 3, -1}),
            (Values{1.5, 1.5, 1}));
  EXPECT_EQ(sampled({linear, GridPadding::reflection, false}, {1.5, -0.5, 2.5, -0.5}),
            (Values{2, 1}));
  EXPECT_EQ(sampled({nearest, GridPadding::zeros, true}, {0.1, -0.1, -0.1, 0.1, 2.5, 0}),
            (Values{2, 3, 0}));
  // Ties go to the even element.
  EXPECT_EQ(sampled({nearest, GridPadding::border, true}, {0, 0}), (Values{1}));
  const Values nan = sampled({linear, GridPadding::border, true}, {kNaN, 0, 1, kInf});
  EXPECT_TRUE(std::isnan(nan[0]));
  EXPECT_EQ(nan[1], 4);
}

TEST(GridSample, BoundsAreWideAtDiscontinuities) {
  Graph g;
  const Value x = g.input("x", {1, 1, 1, 4}, f32), grid = g.input("grid", {1, 1, 3, 2}, f32);
  const auto y =
      g.apply(GridSampleForward{{.mode = GridSampleMode::nearest}},
              {{GridSampleForward::x, x}, {GridSampleForward::grid, grid}}, {GridSampleForward::y});
  const auto dx = g.apply(GridSampleBackward{},
                          {{GridSampleBackward::x, x},
                           {GridSampleBackward::grid, grid},
                           {GridSampleBackward::dy, g.input("dy", {1, 1, 1, 3}, f32)}},
                          {GridSampleBackward::dx, GridSampleBackward::dgrid});
  g.output("y", y[GridSampleForward::y]);
  g.output("dx", dx[GridSampleBackward::dx]);
  g.output("dgrid", dx[GridSampleBackward::dgrid]);
  Evaluation e(g);
  e.set("x", {1, 2, 4, 8});
  e.set("dy", {1, 1, 1});
  // Positions 1.5 (give or take a rounding), 1 (likewise), 2.25: (v + 1) * 1.5
  e.set("grid", {0x1.000002p-24, 0, -0.333333343, 0, 0.5, 0});
  EXPECT_GE(e.oracle("y").bounds[0], 2.0);
  EXPECT_EQ(e.oracle("y").bounds[2], 0.0);
  EXPECT_GE(e.oracle("dgrid").bounds[2], 1.5);  // the slope changes from 1 to 2 there
  EXPECT_LT(e.oracle("dgrid").bounds[4], 1e-4);
  EXPECT_EQ(e.oracle("dgrid").values[4], 6.0);
  e.expect_nodes_agree();
}

TEST(Im2Col, Patches) {
  Graph g;
  const auto y =
      g.apply(Im2Col{.window = {2}, .padding = {1}, .post_padding = Dims{0}, .stride = {2}},
              {{Im2Col::x, g.input("x", {1, 2, 5}, f32)}}, {Im2Col::y});
  g.output("y", y[Im2Col::y]);
  Evaluation e(g);
  e.set("x", {1, 2, 3, 4, 5, 6, 7, 8, 9, 10});
  EXPECT_EQ(e.tensor("y").dims, (Dims{1, 4, 3}));
  expect_result(e, "y", {0, 2, 4, 1, 3, 5, 0, 7, 9, 6, 8, 10});
}

TEST(Im2Col, DilatedBooleans) {
  Graph g;
  const auto y = g.apply(Im2Col{.window = {1, 2}, .dilation = {1, 2}},
                         {{Im2Col::x, g.input("x", {1, 1, 2, 3}, boolean)}}, {Im2Col::y});
  g.output("y", y[Im2Col::y]);
  Evaluation e(g);
  e.set("x", {1, 0, 0, 1, 1, 1});
  expect_result(e, "y", {1, 1, 0, 1});
}

TEST(TensorTransform, FoldThenUnfold) {
  Graph g;
  const TensorTransform fold{.pad_before = {0, 0, 1}, .pad_after = {0, 0, 0}, .fold = {2}};
  TensorTransform unfold = fold;
  unfold.unfold = true;
  const Value x = g.input("x", {1, 2, 3}, i32);
  const Value y = g.apply(fold, {{TensorTransform::x, x}}, {TensorTransform::y});
  g.output("y", y);
  g.output("back", g.apply(unfold, {{TensorTransform::x, y}}, {TensorTransform::y}));
  Evaluation e(g);
  e.set("x", {1, 2, 3, 4, 5, 6});
  EXPECT_EQ(e.tensor("y").dims, (Dims{1, 4, 2}));
  // [0 1 2 3] and [0 4 5 6]: the evens of both, then the odds.
  expect_result(e, "y", {0, 2, 0, 5, 1, 3, 4, 6});
  expect_result(e, "back", {1, 2, 3, 4, 5, 6});
}

TEST(TensorTransform, PadsAnyAxisAndBlends) {
  Graph g;
  const TensorTransform op{.pad_before = {1, 0}, .pad_after = {0, 1}, .alpha = 2.0, .beta = -1.0};
  g.output("y", g.apply(op,
                        {{TensorTransform::x, g.input("x", {1, 2}, f32)},
                         {TensorTransform::z, g.input("z", {2, 3}, f32)}},
                        {TensorTransform::y}));
  Evaluation e(g);
  e.set("x", {5, 7});
  e.set("z", {1, 2, 3, 4, 5, 6});
  expect_result(e, "y", {-1, -2, -3, 6, 9, -6});
}

}  // namespace
}  // namespace ashlar::reference
