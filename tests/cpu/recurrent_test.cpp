// Networks large enough for several threads, panels and GEMM blocks.
#include <memory>

#include "cpu/plan_check.hpp"
#include "graph/rnn_shapes.hpp"

namespace ashlar::cpu {
namespace {

using F = RnnForward;
using D = RnnBackwardData;
using W = RnnBackwardWeights;

struct Network {
  RnnAttributes attributes;
  std::int64_t steps, batch, features;
  std::vector<double> lengths = {};
  DType dtype = f32;
};

// Forward and both gradients in one graph.
Graph training_graph(const Network& network) {
  const RnnAttributes& attributes = network.attributes;
  const bool packed = attributes.layout == RnnLayout::packed;
  const bool lstm = attributes.mode == RnnMode::lstm;
  const RnnShape shape(attributes,
                       packed ? Dims{network.steps, network.features}
                              : Dims{network.steps, network.batch, network.features},
                       network.batch, network.features);
  Graph g;
  const DType dtype = network.dtype;
  const Value x = g.input("x", shape.sequence(shape.input), dtype);
  const Value weights = g.input("weights", {shape.weight_count()}, dtype);
  const Value hx = g.input("hx", shape.state(shape.output()), dtype);
  const Value cx = lstm ? g.input("cx", shape.state(shape.hidden), dtype) : Value();
  const Value dy = g.input("dy", shape.sequence(shape.layer_output()), dtype);
  const Value lengths =
      network.lengths.empty() ? Value() : g.input("lengths", {network.batch}, i32);
  const auto apply = [&]<class Op>(Op op, std::type_identity_t<std::vector<Operand<Op>>> operands,
                                   const std::type_identity_t<std::vector<Wanted<Op>>>& wanted) {
    static_cast<RnnAttributes&>(op) = attributes;
    operands.push_back({Op::hx, hx});
    if (lengths) operands.push_back({Op::seq_lengths, lengths});
    return g.apply(op, operands, wanted);
  };
  const auto forward =
      apply(F(), {{F::x, x}, {F::weights, weights}, {F::cx, cx}}, {F::hy, F::reserve});
  const auto data = apply(
      D(), {{D::dy, dy}, {D::weights, weights}, {D::reserve, forward[F::reserve]}, {D::cx, cx}},
      {D::dhx, D::dgates});
  const auto gradient =
      apply(W(), {{W::x, x}, {W::reserve, forward[F::reserve]}, {W::dgates, data[D::dgates]}}, {});
  g.output("y", forward[F::y]);
  g.output("hy", forward[F::hy]);
  g.output("dx", data[D::dx]);
  g.output("dhx", data[D::dhx]);
  g.output("dweights", gradient[W::dweights]);
  return g;
}

void check(const Network& network) {
  SCOPED_TRACE(testing::Message() << "mode " << static_cast<int>(network.attributes.mode) << " in "
                                  << to_string(network.dtype));
  PlanCheck plan(training_graph(network));
  // Small weights keep the state, and with it the error bound, from growing.
  plan.fill("weights", -0.1, 0.1);
  if (!network.lengths.empty()) plan.set("lengths", network.lengths);
  plan.expect_agrees("cpu.recurrent");
}

RnnAttributes attributes(RnnMode mode, std::int64_t hidden) {
  RnnAttributes result;
  result.mode = mode;
  result.hidden_size = hidden;
  return result;
}

TEST(Recurrent, EveryModeOverSeveralPanels) {
  for (RnnMode mode : {RnnMode::relu, RnnMode::tanh, RnnMode::lstm, RnnMode::gru})
    check({attributes(mode, 70), 6, 29, 45});
}

TEST(Recurrent, Dtypes) {
  for (DType dtype : kFloats)
    check({.attributes = attributes(RnnMode::lstm, 40),
           .steps = 4,
           .batch = 13,
           .features = 33,
           .dtype = dtype});
}

TEST(Recurrent, DeepBothWaysWithLengths) {
  RnnAttributes network = attributes(RnnMode::gru, 37);
  network.layers = 3;
  network.bidirectional = true;
  check({network, 7, 5, 20, {7, 1, 4, 0, 6}});
  network = attributes(RnnMode::lstm, 37);
  network.layers = 2;
  network.bidirectional = true;
  network.projection_size = 18;
  check({network, 7, 5, 20, {3, 7, 100, -2, 6}});
}

// 1 + 3 + 5 steps in 9 rows, and 40 rows for 36 steps.
TEST(Recurrent, Packed) {
  RnnAttributes network = attributes(RnnMode::lstm, 33);
  network.layers = 2;
  network.bidirectional = true;
  network.layout = RnnLayout::packed;
  check({network, 9, 3, 17, {5, 3, 1}});
  check({network, 40, 4, 17, {12, 8, 3, 13}});
  check({network, 10, 3, 17, {9, 9, 9}});  // more steps than rows
}

// Prepacked constant weights give the same bits.
TEST(Recurrent, ConstantWeights) {
  RnnForward op;
  op.hidden_size = 70, op.layers = 2, op.bidirectional = true, op.projection_size = 33;
  const RnnShape shape(op, {5, 3, 40}, 3, 40);
  Graph g;
  const Value x = g.input("x", shape.sequence(40), f32),
              weights = g.input("weights", {shape.weight_count()}, f32);
  g.output("y", g.apply(op, {{F::x, x}, {F::weights, weights}}, {})[F::y]);
  std::vector<float> x_data(5 * 3 * 40),
      weight_data(static_cast<std::size_t>(shape.weight_count()));
  fill_random(g.tensor(x.id()), x_data.data(), 1);
  fill_random(g.tensor(weights.id()), weight_data.data(), 2);
  for (float& weight : weight_data) weight *= 0.1f;
  const auto run = [&](const CompileOptions& options) {
    std::vector<float> y(static_cast<std::size_t>(15 * shape.layer_output()), -7.0f);
    const Plan plan = compile(g, Device::cpu(), options);
    std::vector<std::byte> memory(static_cast<std::size_t>(plan.workspace_size()) + 64);
    void* workspace = memory.data();
    std::size_t space = memory.size();
    std::align(64, space - 64, workspace, space);
    plan.run({{"x", x_data.data()}, {"weights", weight_data.data()}, {"y", y.data()}}, workspace);
    return y;
  };
  const std::vector<float> expected = run({});
  EXPECT_NE(expected[0], -7.0f);
  EXPECT_EQ(run({.constants = {{"weights", weight_data.data()}}}), expected);
}

TEST(Recurrent, OneSequenceOneStep) {
  check({attributes(RnnMode::lstm, 130), 1, 1, 3});
  check({attributes(RnnMode::gru, 1), 50, 1, 1});
}

}  // namespace
}  // namespace ashlar::cpu
