// Cases of recurrent networks.
#include "graph/rnn_shapes.hpp"
#include "ops/op_case.hpp"

namespace ashlar::ops {

namespace {

using F = RnnForward;
using D = RnnBackwardData;
using W = RnnBackwardWeights;

struct RnnProblem {
  std::string label;
  RnnAttributes attributes;
  std::int64_t steps = 5, batch = 3, features = 4;
  bool lengths = false, states = true, one_shape = true;
};

RnnAttributes network(RnnMode mode, std::int64_t hidden) {
  RnnAttributes attributes;
  attributes.mode = mode;
  attributes.hidden_size = hidden;
  return attributes;
}

template <class Change>
RnnAttributes with(RnnAttributes attributes, const Change& change) {
  change(attributes);
  return attributes;
}

std::vector<RnnProblem> rnn_problems() {
  const auto deep = [](RnnAttributes& op) {
    op.layers = 2;
    op.bidirectional = true;
  };
  const auto packed = [](RnnAttributes& op) {
    op.layers = 2;
    op.bidirectional = true;
    op.layout = RnnLayout::packed;
  };
  const auto skip = [](RnnAttributes& op) {
    op.input = RnnInput::skip;
    op.layers = 2;
    op.bias = RnnBias::recurrent;
  };
  std::vector<RnnProblem> list;
  for (RnnMode mode : {RnnMode::relu, RnnMode::tanh, RnnMode::lstm, RnnMode::gru}) {
    const bool lstm = mode == RnnMode::lstm;
    const std::string name =
        std::array{"relu", "tanh", "lstm", "gru"}[static_cast<std::size_t>(mode)];
    list.push_back({name, network(mode, 5), 5, 3, 4, false, true, !lstm});
    list.push_back(
        {name + ", deep, both ways, lengths", with(network(mode, 3), deep), 4, 3, 4, true});
    list.push_back({name + ", packed", with(network(mode, 3), packed), 7, 3, 2, true});
    list.push_back({name + ", skip", with(network(mode, 4), skip), 3, 2, 4, false, false});
    list.push_back({name + ", wider than a vector", network(mode, 37), 3, 5, 19});
  }
  list.push_back({"dropout",
                  with(network(RnnMode::lstm, 3),
                       [](RnnAttributes& op) {
                         op.layers = 3;
                         op.dropout = 0.3;
                         op.bias = RnnBias::input;
                       }),
                  4, 2, 3, true});
  list.push_back({"dropout, packed, both ways",
                  with(network(RnnMode::gru, 3),
                       [&](RnnAttributes& op) {
                         packed(op);
                         op.dropout = 0.3;
                         op.bias = RnnBias::none;
                       }),
                  8, 3, 3, true});
  list.push_back({"projection, clip, padding value",
                  with(network(RnnMode::lstm, 5),
                       [&](RnnAttributes& op) {
                         deep(op);
                         op.projection_size = 2;
                         op.clip_low = -0.25;
                         op.clip_high = 0.25;
                         op.clip_nan = true;
                         op.padding_value = 0.5;
                       }),
                  4, 3, 3, true, true, false});
  list.push_back({"no steps", network(RnnMode::gru, 3), 0, 2, 3});
  list.push_back({"no sequences", with(network(RnnMode::lstm, 3), deep), 3, 0, 3, true});
  list.push_back({"no features", network(RnnMode::tanh, 3), 3, 2, 0});
  return list;
}

RnnShape shape_of(const RnnProblem& p) {
  const bool packed = p.attributes.layout == RnnLayout::packed;
  return {p.attributes, packed ? Dims{p.steps, p.features} : Dims{p.steps, p.batch, p.features},
          p.batch, p.features};
}

template <class Op>
Op op_of(const RnnProblem& p) {
  Op op;
  static_cast<RnnAttributes&>(op) = p.attributes;
  return op;
}

// Lengths and the seed.
template <class Op>
void add_integers(CaseBuilder& b, const RnnProblem& p, std::vector<Operand<Op>>& operands) {
  if (p.lengths) operands.push_back({Op::seq_lengths, b.graph().input("lengths", {p.batch}, i32)});
  if (p.attributes.dropout == 0) return;
  operands.push_back({Op::dropout_seed, b.graph().input("seed", {1}, i64)});
  operands.push_back({Op::dropout_offset, b.graph().input("offset", {1}, i32)});
}

// Narrow types cannot hold records.
DType record_dtype(CaseBuilder& b) {
  return b.dtype() == f16 || b.dtype() == bf16 ? b.dtype() : b.wide();
}

void forward(CaseBuilder& b, const RnnProblem& p, bool training) {
  const RnnShape shape = shape_of(p);
  const bool lstm = shape.mode == RnnMode::lstm;
  std::vector<Operand<F>> operands = {{F::x, b.operand("x", shape.sequence(shape.input))}};
  operands.push_back({F::weights, b.input("weights", {shape.weight_count()}, b.dtype())});
  if (p.states) {
    operands.push_back({F::hx, b.input("hx", shape.state(shape.output()), b.wide())});
    if (lstm) operands.push_back({F::cx, b.input("cx", shape.state(shape.hidden), b.wide())});
  }
  add_integers<F>(b, p, operands);
  std::vector<Wanted<F>> wanted;
  if (training) {
    wanted = {F::hy, {F::reserve, record_dtype(b)}};
    if (lstm) wanted.push_back(F::cy);
  }
  const auto r = b.graph().apply(op_of<F>(p), operands, wanted);
  b.result(r[F::y]);
  for (const auto& [name, out] : {std::pair("hy", F::hy), {"cy", F::cy}, {"reserve", F::reserve}})
    if (r[out]) b.result(name, r[out]);
}

void backward_data(CaseBuilder& b, const RnnProblem& p) {
  const RnnShape shape = shape_of(p);
  const bool lstm = shape.mode == RnnMode::lstm;
  const Dims state = shape.state(shape.output()), cell = shape.state(shape.hidden);
  std::vector<Operand<D>> operands = {
      {D::dy, b.operand("dy", shape.sequence(shape.layer_output()))}};
  operands.push_back({D::weights, b.input("weights", {shape.weight_count()}, b.dtype())});
  operands.push_back(
      {D::reserve, b.input("reserve_in", shape.records(shape.reserve_width()), record_dtype(b))});
  std::vector<Wanted<D>> wanted = {{D::dgates, record_dtype(b)}, D::dhx};
  if (p.states) {
    operands.push_back({D::hx, b.input("hx", state, b.wide())});
    operands.push_back({D::dhy, b.input("dhy", state, b.dtype())});
    if (lstm) operands.push_back({D::cx, b.input("cx", cell, b.wide())});
    if (lstm) operands.push_back({D::dcy, b.input("dcy", cell, b.wide())});
  }
  if (lstm) wanted.push_back(D::dcx);
  add_integers<D>(b, p, operands);
  const auto r = b.graph().apply(op_of<D>(p), operands, wanted);
  b.result(r[D::dx]);
  b.result("dhx", r[D::dhx]);
  b.result("dgates", r[D::dgates]);
  if (lstm) b.result("dcx", r[D::dcx]);
}

void backward_weights(CaseBuilder& b, const RnnProblem& p) {
  const RnnShape shape = shape_of(p);
  std::vector<Operand<W>> operands = {{W::x, b.operand("x", shape.sequence(shape.input))}};
  operands.push_back(
      {W::reserve, b.input("reserve_in", shape.records(shape.reserve_width()), record_dtype(b))});
  operands.push_back(
      {W::dgates, b.input("dgates_in", shape.records(shape.dgates_width()), record_dtype(b))});
  if (p.states) {
    operands.push_back({W::hx, b.input("hx", shape.state(shape.output()), b.wide())});
    operands.push_back({W::previous, b.input("previous", {shape.weight_count()}, b.dtype())});
  }
  add_integers<W>(b, p, operands);
  b.result(b.graph().apply(op_of<W>(p), operands, {})[W::dweights]);
}

}  // namespace

std::vector<OpCase> recurrent_cases() {
  std::vector<OpCase> cases;
  for (const RnnProblem& p : rnn_problems()) {
    for (bool training : {false, true})
      cases.push_back({"rnn_forward", p.label + (training ? ", training" : ""), kFloating,
                       [=](CaseBuilder& b) { forward(b, p, training); }, false,
                       p.one_shape || !training});
    cases.push_back({"rnn_backward_data", p.label, kFloating,
                     [=](CaseBuilder& b) { backward_data(b, p); }, false, p.one_shape});
    cases.push_back({"rnn_backward_weights", p.label, kFloating,
                     [=](CaseBuilder& b) { backward_weights(b, p); }, false, p.one_shape});
  }
  return cases;
}

}  // namespace ashlar::ops
