// Recurrent networks small enough to verify manually.
#include <cmath>

#include "base/dropout.hpp"
#include "graph/rnn_shapes.hpp"
#include "reference/harness.hpp"

namespace ashlar::reference {
namespace {

using F = RnnForward;
using D = RnnBackwardData;
using W = RnnBackwardWeights;

template <class Op>
Op network(const RnnAttributes& attributes) {
  Op op;
  static_cast<RnnAttributes&>(op) = attributes;
  return op;
}

RnnAttributes one_unit(RnnMode mode, RnnBias bias = RnnBias::none) {
  RnnAttributes attributes;
  attributes.mode = mode;
  attributes.hidden_size = 1;
  attributes.bias = bias;
  return attributes;
}

// h = relu(2 x + h' / 2): 4, then relu(-4 + 2) = 0, then 6.
TEST(HandRnn, Relu) {
  const RnnAttributes attributes = one_unit(RnnMode::relu);
  Graph g;
  const Value x = g.input("x", {3, 1, 1}, f64), weights = g.input("weights", {2}, f64);
  const Value hx = g.input("hx", {1, 1, 1}, f64), dy = g.input("dy", {3, 1, 1}, f64);
  const auto forward = g.apply(
      network<F>(attributes), {{F::x, x}, {F::weights, weights}, {F::hx, hx}}, {F::hy, F::reserve});
  const Value reserve = forward[F::reserve];
  const auto data =
      g.apply(network<D>(attributes),
              {{D::dy, dy}, {D::weights, weights}, {D::reserve, reserve}, {D::hx, hx}},
              {D::dhx, D::dgates});
  const auto gradient =
      g.apply(network<W>(attributes),
              {{W::x, x}, {W::reserve, reserve}, {W::dgates, data[D::dgates]}, {W::hx, hx}}, {});
  g.output("y", forward[F::y]);
  g.output("hy", forward[F::hy]);
  g.output("dx", data[D::dx]);
  g.output("dhx", data[D::dhx]);
  g.output("dweights", gradient[W::dweights]);
  Evaluation e(g);
  e.set("x", {1, -2, 3});
  e.set("weights", {2, 0.5});
  e.set("hx", {4});
  e.set("dy", {1, 1, 1});
  expect_result(e, "y", {4, 0, 6});
  expect_result(e, "hy", {6});
  expect_result(e, "dx", {2, 0, 2});  // nothing passes the step whose relu is closed
  expect_result(e, "dhx", {0.5});
  expect_result(e, "dweights", {1 * 1 + 1 * 3, 1 * 4 + 1 * 0});
}

// With zero weights every gate is one half and the new content is zero: c halves from step to step.
TEST(HandRnn, LstmWithClippedCell) {
  RnnAttributes attributes = one_unit(RnnMode::lstm);
  attributes.clip_low = -10.0;
  attributes.clip_high = 0.75;
  Graph g;
  const Value x = g.input("x", {2, 1, 1}, f64), weights = g.input("weights", {8}, f64);
  const Value cx = g.input("cx", {1, 1, 1}, f64);
  const auto r = g.apply(network<F>(attributes), {{F::x, x}, {F::weights, weights}, {F::cx, cx}},
                         {F::hy, F::cy, F::reserve});
  const Value dcy = g.input("dcy", {1, 1, 1}, f64), dy = g.input("dy", {2, 1, 1}, f64);
  const auto data = g.apply(
      network<D>(attributes),
      {{D::dy, dy}, {D::weights, weights}, {D::reserve, r[F::reserve]}, {D::cx, cx}, {D::dcy, dcy}},
      {D::dcx});
  g.output("y", r[F::y]);
  g.output("cy", r[F::cy]);
  g.output("reserve", r[F::reserve]);
  g.output("dx", data[D::dx]);
  g.output("dcx", data[D::dcx]);
  Evaluation e(g);
  e.set("x", {3, 5});
  e.set("cx", {2});
  e.set("dcy", {1});
  const double h0 = 0.5 * std::tanh(0.75), h1 = 0.5 * std::tanh(0.375);
  expect_result(e, "y", {h0, h1}, 1e-15);
  expect_result(e, "cy", {0.375});
  expect_result(e, "reserve", {0.5, 0.5, 0, 0.5, 0.75, h0, 0.5, 0.5, 0, 0.5, 0.375, h1}, 1e-15);
  expect_result(e, "dcx", {0});  // the first step was clipped
  e.set("cx", {1});
  expect_result(e, "dcx", {0.25});  // f = 1/2 twice
}

// A NaN in the cell state becomes clip_low with clip_nan.
TEST(HandRnn, ClippedNan) {
  for (bool replaced : {false, true}) {
    RnnAttributes attributes = one_unit(RnnMode::lstm);
    attributes.clip_low = -2.0;
    attributes.clip_high = 2.0;
    attributes.clip_nan = replaced;
    Graph g;
    const auto r = g.apply(network<F>(attributes),
                           {{F::x, g.input("x", {1, 1, 1}, f64)},
                            {F::weights, g.input("weights", {8}, f64)},
                            {F::cx, g.input("cx", {1, 1, 1}, f64)}},
                           {F::cy});
    g.output("y", r[F::y]);
    g.output("cy", r[F::cy]);
    Evaluation e(g);
    e.set("cx", {kNaN});
    expect_result(e, "cy", {replaced ? -2.0 : kNaN});
    expect_result(e, "y", {replaced ? 0.5 * std::tanh(-2.0) : kNaN}, 1e-15);
  }
}

// r = z = 1/2; the reset gate multiplies the recurrent bias, too: n = tanh(r * 2).
TEST(HandRnn, Gru) {
  const RnnAttributes attributes = one_unit(RnnMode::gru, RnnBias::recurrent);
  Graph g;
  const auto r = g.apply(network<F>(attributes),
                         {{F::x, g.input("x", {1, 1, 1}, f64)},
                          {F::weights, g.input("weights", {9}, f64)},
                          {F::hx, g.input("hx", {1, 1, 1}, f64)}},
                         {F::hy, F::reserve});
  g.output("y", r[F::y]);
  g.output("reserve", r[F::reserve]);
  Evaluation e(g);
  e.set("weights", {0, 0, 0, 0, 0, 0, 0, 0, 2});
  e.set("hx", {4});
  const double h = 0.5 * std::tanh(1.0) + 0.5 * 4;
  expect_result(e, "y", {h}, 1e-15);
  expect_result(e, "reserve", {0.5, 0.5, std::tanh(1.0), 2, h}, 1e-15);
}

// h = relu(x + h'): running sums, which show the inputs of every step.
struct RunningSums {
  Graph g;
  explicit RunningSums(RnnLayout layout, const Dims& x, std::int64_t batch, bool both = false) {
    RnnAttributes attributes = one_unit(RnnMode::relu);
    attributes.input = RnnInput::skip;
    attributes.layout = layout;
    attributes.padding_value = 7.0;
    attributes.bidirectional = both;
    const std::int64_t directions = both ? 2 : 1;
    const Value input = g.input("x", x, f64), weights = g.input("weights", {directions}, f64);
    const Value lengths = g.input("lengths", {batch}, i32);
    const Value hx = g.input("hx", {directions, batch, 1}, f64);
    const auto r =
        g.apply(network<F>(attributes),
                {{F::x, input}, {F::weights, weights}, {F::hx, hx}, {F::seq_lengths, lengths}},
                {F::hy, F::reserve});
    g.output("y", r[F::y]);
    g.output("hy", r[F::hy]);
    g.output("reserve", r[F::reserve]);
  }
};

TEST(HandRnn, PaddedLengths) {
  const RunningSums sums(RnnLayout::padded, {3, 2, 1}, 2);
  Evaluation e(sums.g);
  e.set("weights", {1});
  e.set("hx", {0, 5});
  e.set("x", {1, 10, 2, 20, 3, 30});
  e.set("lengths", {2, 0});
  expect_result(e, "y", {1, 7, 3, 7, 7, 7});
  expect_result(e, "hy", {3, 5});
  expect_result(e, "reserve", {1, 0, 3, 0, 0, 0});
  e.set("lengths", {-4, 99});  // clamped to 0 and 3
  expect_result(e, "y", {7, 15, 7, 35, 7, 65});
  expect_result(e, "hy", {0, 65});
}

TEST(HandRnn, PaddedLengthsBackwards) {
  const RunningSums sums(RnnLayout::padded, {3, 1, 1}, 1, true);
  Evaluation e(sums.g);
  e.set("weights", {1, 1});
  e.set("x", {1, 2, 3});
  e.set("lengths", {2});  // the other direction starts at the sequence's own end
  expect_result(e, "y", {1, 3, 3, 2, 7, 7});
  expect_result(e, "hy", {3, 3});
}

TEST(HandRnn, PackedLengths) {
  const RunningSums sums(RnnLayout::packed, {4, 1}, 2);
  Evaluation e(sums.g);
  e.set("weights", {1});
  e.set("x", {1, 10, 2, 3});
  e.set("lengths", {3, 1});
  expect_result(e, "y", {1, 10, 3, 6});
  expect_result(e, "hy", {6, 10});
  e.set("lengths", {1, 3});  // not sorted: by step, then by sequence
  expect_result(e, "y", {1, 10, 12, 15});
  expect_result(e, "hy", {1, 15});
  e.set("lengths", {9, 9});  // the rows run out
  expect_result(e, "y", {1, 10, 3, 13});
  expect_result(e, "hy", {3, 13});
  e.set("lengths", {-1, 2});  // rows without a step
  expect_result(e, "y", {1, 11, 7, 7});
  expect_result(e, "hy", {0, 11});
}

// The second layer reads the outputs of the first after dropout.
TEST(HandRnn, DropoutBetweenLayers) {
  RnnAttributes attributes = one_unit(RnnMode::relu);
  attributes.layers = 2;
  attributes.dropout = 0.5;
  Graph g;
  const auto r = g.apply(network<F>(attributes),
                         {{F::x, g.input("x", {8, 1, 1}, f64)},
                          {F::weights, g.input("weights", {4}, f64)},
                          {F::dropout_seed, g.input("seed", {1}, i64)},
                          {F::dropout_offset, g.input("offset", {1}, i64)}},
                         {});
  g.output("y", r[F::y]);
  Evaluation e(g);
  e.set("weights", {1, 0, 1, 0});
  e.set("x", {1, 2, 3, 4, 5, 6, 7, 8});
  e.set("seed", {17});
  e.set("offset", {3});
  std::vector<double> expected;
  for (std::uint64_t i = 0; i < 8; ++i)
    expected.push_back(dropout_keeps(17, 3, i, 0.5) ? 2.0 * static_cast<double>(i + 1) : 0.0);
  expect_result(e, "y", expected);
}

// The projection multiplies the hidden state: r = p h.
TEST(HandRnn, Projection) {
  RnnAttributes attributes = one_unit(RnnMode::lstm);
  attributes.hidden_size = 2;
  attributes.projection_size = 1;
  Graph g;
  const auto r = g.apply(network<F>(attributes),
                         {{F::x, g.input("x", {1, 1, 1}, f64)},
                          {F::weights, g.input("weights", {8 + 8 + 2}, f64)},
                          {F::cx, g.input("cx", {1, 1, 2}, f64)}},
                         {F::hy, F::cy});
  g.output("y", r[F::y]);
  g.output("cy", r[F::cy]);
  Evaluation e(g);
  std::vector<double> weights(18, 0.0);
  weights[16] = 3, weights[17] = -1;
  e.set("weights", weights);
  e.set("cx", {2, 4});
  expect_result(e, "cy", {1, 2});
  expect_result(e, "y", {3 * 0.5 * std::tanh(1.0) - 0.5 * std::tanh(2.0)}, 1e-15);
}

// Every weight belongs to exactly one matrix or bias.
TEST(RnnShape, ParametersCoverTheWeights) {
  for (RnnMode mode : {RnnMode::relu, RnnMode::tanh, RnnMode::lstm, RnnMode::gru})
    for (RnnBias bias : {RnnBias::none, RnnBias::input, RnnBias::recurrent, RnnBias::both})
      for (bool skip : {false, true}) {
        RnnAttributes attributes;
        attributes.mode = mode;
        attributes.bias = bias;
        attributes.hidden_size = 3;
        attributes.projection_size = mode == RnnMode::lstm ? 2 : 0;
        attributes.layers = 3;
        attributes.bidirectional = true;
        attributes.input = skip ? RnnInput::skip : RnnInput::linear;
        const ashlar::RnnShape shape(attributes, {4, 2, 3}, 0, skip ? 3 : 5);
        EXPECT_EQ(rnn_input_size(attributes, shape.weight_count()), shape.input);
        std::vector<int> uses(static_cast<std::size_t>(shape.weight_count()));
        const auto use = [&](const RnnMatrix& matrix) {
          for (std::int64_t i = 0; i < matrix.size(); ++i)
            ++uses.at(static_cast<std::size_t>(matrix.offset + i));
        };
        for (std::int64_t layer = 0; layer < 3; ++layer)
          for (std::int64_t direction = 0; direction < 2; ++direction)
            for (std::int64_t number = 0; number <= 2 * shape.gates(); ++number) {
              const RnnParameter parameter = rnn_parameter(shape, layer, direction, number);
              use(parameter.matrix);
              use(parameter.bias);
            }
        EXPECT_EQ(uses, std::vector<int>(uses.size(), 1));
      }
}

}  // namespace
}  // namespace ashlar::reference
