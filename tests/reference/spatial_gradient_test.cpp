// The gradients of the spatial family against central differences, in f64.
#include "graph/enum_names.hpp"
#include "reference/harness.hpp"

namespace ashlar::reference {
namespace {

// The loss of every sequence is weighted by its dy.
void check_ctc(const CtcLoss& op, bool flat) {
  const Dims x_dims = {6, 3, 4}, label_dims = flat ? Dims{5} : Dims{3, 3};
  const auto loss_of = [&](Graph& g, const std::vector<Wanted<CtcLoss>>& wanted) {
    return g.apply(op,
                   {{CtcLoss::x, g.input("x", x_dims, f64)},
                    {CtcLoss::labels, g.input("labels", label_dims, i32)},
                    {CtcLoss::label_lengths, g.input("label_lengths", {3}, i32)},
                    {CtcLoss::input_lengths, g.input("input_lengths", {3}, i32)}},
                   wanted);
  };
  Graph f;
  f.output("y", loss_of(f, {CtcLoss::loss}));
  Graph b;
  const Value dy = b.input("dy", {1, 3, 1}, f64);
  const auto results = loss_of(b, {CtcLoss::loss, CtcLoss::gradient});
  b.output("loss", results[CtcLoss::loss]);
  b.output("dx", results[CtcLoss::gradient] * dy);
  Evaluation forward(f), backward(b);
  forward.fill_inputs(9, 0.1, 0.9);
  if (flat)
    forward.set("labels", {1, 2, 2, 3, 1});
  else
    forward.set("labels", {1, 2, 0, 2, 0, 0, 3, 3, 1});
  forward.set("label_lengths", flat ? std::vector<double>{2, 1, 2} : std::vector<double>{2, 1, 3});
  forward.set("input_lengths", {6, 4, 5});
  expect_gradients(forward, "y", backward, {"x"});
}

TEST(CtcGradients, MatchFiniteDifferences) {
  for (CtcInput input : {CtcInput::logits, CtcInput::probabilities})
    for (bool flat : {false, true}) check_ctc({.input = input}, flat);
}

TEST(GridGeneratorGradients, MatchFiniteDifferences) {
  for (bool align : {false, true})
    for (const Dims& size : {Dims{3, 4}, Dims{2, 3, 2}}) {
      const std::int64_t axes = size.rank();
      Graph f;
      const Value grid =
          f.apply(GridGeneratorForward{{size, align}},
                  {{GridGeneratorForward::theta, f.input("theta", {2, axes, axes + 1}, f64)}},
                  {GridGeneratorForward::grid});
      f.output("grid", grid);
      Graph b;
      b.output("dtheta",
               b.apply(GridGeneratorBackward{{.align_corners = align}},
                       {{GridGeneratorBackward::dgrid, b.input("dgrid", grid.dims(), f64)}},
                       {GridGeneratorBackward::dtheta}));
      Evaluation forward(f), backward(b);
      forward.fill_inputs(3);
      expect_gradients(forward, "grid", backward, {"theta"}, "dgrid");
    }
}

void check_sampling(const GridSampleAttributes& attributes, const Dims& x_dims, const Dims& grid) {
  SCOPED_TRACE(testing::Message() << enum_name(attributes.mode) << " "
                                  << enum_name(attributes.padding) << " "
                                  << attributes.align_corners << " " << to_string(x_dims));
  Graph f;
  const Value y = f.apply(GridSampleForward{attributes},
                          {{GridSampleForward::x, f.input("x", x_dims, f64)},
                           {GridSampleForward::grid, f.input("grid", grid, f64)}},
                          {GridSampleForward::y});
  f.output("y", y);
  Graph b;
  const auto results = b.apply(GridSampleBackward{attributes},
                               {{GridSampleBackward::x, b.input("x", x_dims, f64)},
                                {GridSampleBackward::grid, b.input("grid", grid, f64)},
                                {GridSampleBackward::dy, b.input("dy", y.dims(), f64)}},
                               {GridSampleBackward::dx, GridSampleBackward::dgrid});
  b.output("dx", results[GridSampleBackward::dx]);
  b.output("dgrid", results[GridSampleBackward::dgrid]);
  Evaluation forward(f), backward(b);
  forward.fill_inputs(17, -1.6, 1.6);
  if (attributes.mode == GridSampleMode::bilinear)
    expect_gradients(forward, "y", backward, {"x", "grid"});
  else
    expect_gradients(forward, "y", backward, {"x"});
}

TEST(GridSampleGradients, MatchFiniteDifferences) {
  for (GridSampleMode mode : {GridSampleMode::bilinear, GridSampleMode::nearest})
    for (GridPadding padding : {GridPadding::zeros, GridPadding::border, GridPadding::reflection})
      for (bool align : {false, true}) {
        check_sampling({mode, padding, align}, {2, 2, 3, 4}, {2, 3, 2, 2});
        check_sampling({mode, padding, align}, {1, 2, 3, 2, 3}, {1, 2, 2, 2, 3});
      }
}

}  // namespace
}  // namespace ashlar::reference
