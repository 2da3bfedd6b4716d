// Random graphs: recurrent networks.
#include "graph/rnn_shapes.hpp"
#include "random/graph_maker.hpp"

namespace ashlar::random_graphs {

void GraphMaker::add_recurrent() {
  RnnAttributes attributes;
  attributes.mode = static_cast<RnnMode>(below(4));
  const bool lstm = attributes.mode == RnnMode::lstm;
  attributes.hidden_size = 1 + below(chance(0.1) ? 20 : 4);
  attributes.layers = 1 + below(3);
  attributes.bidirectional = chance(0.3);
  attributes.bias = static_cast<RnnBias>(below(4));
  if (lstm && chance(0.3)) attributes.projection_size = 1 + below(attributes.hidden_size);
  if (lstm && chance(0.3)) attributes.clip_low = -0.5;
  if (lstm && chance(0.3)) attributes.clip_high = 0.5;
  if (chance(0.2)) attributes.dropout = 0.25;
  if (chance(0.2)) attributes.padding_value = 2.0;
  if (chance(0.3)) attributes.layout = RnnLayout::packed;
  if (chance(0.15)) attributes.input = RnnInput::skip;
  const bool packed = attributes.layout == RnnLayout::packed;
  const bool skip = attributes.input == RnnInput::skip;
  const std::int64_t batch = 1 + below(3), steps = 1 + below(5);
  const std::int64_t features = skip ? attributes.hidden_size : 1 + below(4);
  const RnnShape shape(attributes,
                       packed ? Dims{batch * steps, features} : Dims{steps, batch, features}, batch,
                       features);
  const DType dtype = floating(), wide = dtype == f64 ? f64 : f32;
  const Dims state = shape.state(shape.output()), cell = shape.state(shape.hidden);
  const bool states = chance(0.6);
  const Value lengths = packed || chance(0.3) ? input({batch}, i32) : Value();
  const Value seed = attributes.dropout > 0 ? input({1}, i64) : Value();

  const auto apply = [&]<class Op>(Op op, std::vector<Operand<Op>> operands,
                                   const std::vector<std::type_identity_t<Wanted<Op>>>& wanted) {
    static_cast<RnnAttributes&>(op) = attributes;
    if (lengths) operands.push_back({Op::seq_lengths, lengths});
    if (seed) operands.push_back({Op::dropout_seed, seed});
    if (states) operands.push_back({Op::hx, like(state, wide)});
    const auto results = graph_.apply(op, operands, wanted, spec());
    for (const Value& value : results.all())
      if (value) keep(value);
  };
  const auto records = [&](std::int64_t width) { return input(shape.records(width), wide); };
  switch (below(3)) {
    case 0: {
      using F = RnnForward;
      std::vector<Operand<F>> operands = {{F::x, like(shape.sequence(features), dtype)},
                                          {F::weights, input({shape.weight_count()}, dtype)}};
      if (states && lstm) operands.push_back({F::cx, like(cell, wide)});
      std::vector<Wanted<F>> wanted;
      if (chance(0.5)) wanted.push_back(F::hy);
      if (lstm && chance(0.5)) wanted.push_back(F::cy);
      if (chance(0.5)) wanted.push_back(F::reserve);
      return apply(F(), operands, wanted);
    }
    case 1: {
      using D = RnnBackwardData;
      std::vector<Operand<D>> operands = {
          {D::dy, like(shape.sequence(shape.layer_output()), dtype)},
          {D::weights, input({shape.weight_count()}, dtype)},
          {D::reserve, records(shape.reserve_width())}};
      if (states && lstm) operands.push_back({D::cx, like(cell, wide)});
      if (chance(0.5)) operands.push_back({D::dhy, like(state, wide)});
      if (lstm && chance(0.5)) operands.push_back({D::dcy, like(cell, wide)});
      std::vector<Wanted<D>> wanted;
      if (chance(0.5)) wanted.push_back(D::dhx);
      if (lstm && chance(0.5)) wanted.push_back(D::dcx);
      if (chance(0.5)) wanted.push_back(D::dgates);
      return apply(D(), operands, wanted);
    }
    default: {
      using W = RnnBackwardWeights;
      std::vector<Operand<W>> operands = {{W::x, like(shape.sequence(features), dtype)},
                                          {W::reserve, records(shape.reserve_width())},
                                          {W::dgates, records(shape.dgates_width())}};
      if (chance(0.3)) operands.push_back({W::previous, input({shape.weight_count()}, dtype)});
      return apply(W(), operands, {});
    }
  }
}

}  // namespace ashlar::random_graphs
