// The gradients of recurrent networks against central differences, all of them at once: the loss
// weighs y, hy and cy.
#include "graph/rnn_shapes.hpp"
#include "reference/harness.hpp"

namespace ashlar::reference {
namespace {

using F = RnnForward;
using D = RnnBackwardData;
using W = RnnBackwardWeights;

struct NetworkCase {
  const char* name;
  RnnMode mode;
  std::function<void(RnnAttributes&)> change = {};
  std::vector<double> lengths = {};  // of 3 sequences
  std::int64_t features = 2;
};

class RnnGradients : public testing::TestWithParam<NetworkCase> {};

Value flat(Graph& g, Value value) { return g.reshape(value, {element_count(value.dims())}); }

TEST_P(RnnGradients, MatchFiniteDifferences) {
  const NetworkCase& test = GetParam();
  RnnAttributes attributes;
  attributes.mode = test.mode;
  attributes.hidden_size = 3;
  if (test.change) test.change(attributes);
  const bool packed = attributes.layout == RnnLayout::packed, lstm = test.mode == RnnMode::lstm;
  const Dims x = packed ? Dims{7, test.features} : Dims{4, 3, test.features};
  const ashlar::RnnShape shape(attributes, x, 3, test.features);
  const Dims hx = shape.state(shape.output()), cx = shape.state(shape.hidden);
  const std::int64_t y_count = element_count(shape.sequence(shape.layer_output()));
  const std::int64_t h_count = element_count(hx), c_count = lstm ? element_count(cx) : 0;

  // The optional inputs common to forward and backward.
  const auto shared = [&](Graph& g, auto op) {
    using Op = decltype(op);
    std::vector<Operand<Op>> operands;
    operands.push_back({Op::hx, g.input("hx", hx, f64)});
    if (!test.lengths.empty()) operands.push_back({Op::seq_lengths, g.input("lengths", {3}, i32)});
    if (attributes.dropout > 0) operands.push_back({Op::dropout_seed, g.input("seed", {1}, i64)});
    return operands;
  };
  Graph f;
  F forward_op;
  static_cast<RnnAttributes&>(forward_op) = attributes;
  std::vector<Operand<F>> operands = shared(f, forward_op);
  operands.push_back({F::x, f.input("x", x, f64)});
  operands.push_back({F::weights, f.input("weights", {shape.weight_count()}, f64)});
  if (lstm) operands.push_back({F::cx, f.input("cx", cx, f64)});
  std::vector<Wanted<F>> wanted = {F::hy, F::reserve};
  if (lstm) wanted.push_back(F::cy);
  const auto r = f.apply(forward_op, operands, wanted);
  std::vector<Value> parts = {flat(f, r[F::y]), flat(f, r[F::hy])};
  if (lstm) parts.push_back(flat(f, r[F::cy]));
  f.output("y", f.concat(parts, 0));
  f.output("reserve", r[F::reserve]);

  Graph b;
  D data_op;
  static_cast<RnnAttributes&>(data_op) = attributes;
  const std::int64_t total = y_count + h_count + c_count;
  const Value dy = b.input("dy", {total}, f64);
  const auto part = [&](std::int64_t first, std::int64_t count, const Dims& dims) {
    return b.reshape(b.slice(dy, {first}, {first + count}), dims);
  };
  std::vector<Operand<D>> data_operands = shared(b, data_op);
  const Value shared_hx = data_operands[0].value;
  const Value reserve = b.input("reserve", shape.records(shape.reserve_width()), f64);
  data_operands.push_back({D::dy, part(0, y_count, shape.sequence(shape.layer_output()))});
  data_operands.push_back({D::dhy, part(y_count, h_count, hx)});
  if (lstm) data_operands.push_back({D::dcy, part(y_count + h_count, c_count, cx)});
  if (lstm) data_operands.push_back({D::cx, b.input("cx", cx, f64)});
  data_operands.push_back({D::reserve, reserve});
  data_operands.push_back({D::weights, b.input("weights", {shape.weight_count()}, f64)});
  std::vector<Wanted<D>> gradients = {D::dhx, D::dgates};
  if (lstm) gradients.push_back(D::dcx);
  const auto data = b.apply(data_op, data_operands, gradients);
  b.output("dx", data[D::dx]);
  b.output("dhx", data[D::dhx]);
  if (lstm) b.output("dcx", data[D::dcx]);
  W weights_op;
  static_cast<RnnAttributes&>(weights_op) = attributes;
  std::vector<Operand<W>> for_weights = {{W::x, b.input("x", x, f64)},
                                         {W::reserve, reserve},
                                         {W::dgates, data[D::dgates]},
                                         {W::hx, shared_hx}};
  if (!test.lengths.empty())
    for_weights.push_back({W::seq_lengths, b.value(b.find_tensor("lengths"))});
  if (attributes.dropout > 0)
    for_weights.push_back({W::dropout_seed, b.value(b.find_tensor("seed"))});
  b.output("dweights", b.apply(weights_op, for_weights, {})[W::dweights]);

  Evaluation forward(f), backward(b);
  forward.fill_inputs(3);
  if (!test.lengths.empty()) forward.set("lengths", test.lengths);
  if (attributes.dropout > 0) forward.set("seed", {5});
  std::vector<std::string> inputs = {"x", "hx", "weights"};
  if (lstm) inputs.push_back("cx");
  expect_gradients(forward, "y", backward, inputs);
}

void deep(RnnAttributes& op) {
  op.layers = 2;
  op.bidirectional = true;
  op.hidden_size = 2;
}
void dropped(RnnAttributes& op) {
  deep(op);
  op.dropout = 0.4;
}
void packed(RnnAttributes& op) {
  deep(op);
  op.layout = RnnLayout::packed;
}
void skipped(RnnAttributes& op) {
  op.input = RnnInput::skip;
  op.layers = 2;
  op.bias = RnnBias::input;
}

INSTANTIATE_TEST_SUITE_P(
    All, RnnGradients,
    testing::Values(
        NetworkCase{"relu", RnnMode::relu}, NetworkCase{"relu_deep", RnnMode::relu, deep},
        NetworkCase{"relu_packed", RnnMode::relu, packed, {4, 2, 1}},
        NetworkCase{"tanh", RnnMode::tanh}, NetworkCase{"tanh_dropout", RnnMode::tanh, dropped},
        NetworkCase{"tanh_skip", RnnMode::tanh, skipped, {}, 3}, NetworkCase{"lstm", RnnMode::lstm},
        NetworkCase{"lstm_deep", RnnMode::lstm, deep},
        NetworkCase{"lstm_dropout_lengths", RnnMode::lstm, dropped, {2, 4, 0}},
        NetworkCase{"lstm_packed", RnnMode::lstm, packed, {2, 4, 1}},
        NetworkCase{"lstm_skip", RnnMode::lstm, skipped, {}, 3},
        NetworkCase{"lstm_clipped", RnnMode::lstm,
                    [](RnnAttributes& op) {
                      op.clip_low = -0.25;
                      op.clip_high = 0.3;
                    }},
        NetworkCase{"lstm_projection",
                    RnnMode::lstm,
                    [](RnnAttributes& op) {
                      op.projection_size = 2;
                      op.layers = 2;
                      op.bidirectional = true;
                      op.bias = RnnBias::recurrent;
                    },
                    {4, 1, 3}},
        NetworkCase{"gru", RnnMode::gru}, NetworkCase{"gru_deep", RnnMode::gru, deep},
        NetworkCase{"gru_dropout_lengths", RnnMode::gru, dropped, {3, 4, 1}},
        NetworkCase{"gru_packed", RnnMode::gru, packed, {4, 2, 1}},
        NetworkCase{"gru_skip", RnnMode::gru, skipped, {}, 3},
        NetworkCase{"gru_recurrent_bias", RnnMode::gru,
                    [](RnnAttributes& op) { op.bias = RnnBias::recurrent; }}),
    [](const auto& param_info) { return param_info.param.name; });

}  // namespace
}  // namespace ashlar::reference
