// Sample graphs with options: recurrent networks.
#include "graph/sample_graphs.hpp"

namespace ashlar::tests {

namespace {

template <class Op>
Op bidirectional_lstm() {
  Op op;
  op.hidden_size = 3;
  op.projection_size = 2;
  op.layers = 2;
  op.bidirectional = true;
  op.dropout = 0.25;
  op.clip_low = -4.0;
  op.clip_high = 4.0;
  return op;
}
// 12 x (5 or 4) input, 12 x 2 recurrent, 2 x 3 projection, two biases of 12; two directions.
constexpr std::int64_t kWeights = 2 * (60 + 24 + 6 + 24) + 2 * (48 + 24 + 6 + 24);

}  // namespace

void add_recurrent_samples(Samples& samples) {
  using F = RnnForward;
  using D = RnnBackwardData;
  using W = RnnBackwardWeights;
  sample(samples, "rnn_forward", [](Graph& g) {
    return g.apply(bidirectional_lstm<F>(),
                   {{F::x, g.input("x", {4, 2, 5}, f32)},
                    {F::weights, g.input("weights", {kWeights}, f32)},
                    {F::hx, g.input("hx", {4, 2, 2}, f32)},
                    {F::cx, g.input("cx", {4, 2, 3}, f32)},
                    {F::seq_lengths, g.input("lengths", {2}, i32)},
                    {F::dropout_seed, g.input("seed", {1}, i64)},
                    {F::dropout_offset, g.input("offset", {1}, i64)}},
                   {F::hy, F::cy, F::reserve});
  });
  sample(samples, "rnn_forward", [](Graph& g) {
    F op;
    op.mode = RnnMode::gru;
    op.hidden_size = 3;
    op.input = RnnInput::skip;
    op.bias = RnnBias::none;
    op.layout = RnnLayout::packed;
    op.padding_value = 1.0;
    return g.apply(op,
                   {{F::x, g.input("x", {6, 3}, f16)},
                    {F::weights, g.input("weights", {27}, f16)},
                    {F::seq_lengths, g.input("lengths", {2}, i64)}},
                   {F::hy});
  });
  sample(samples, "rnn_backward_data", [](Graph& g) {
    return g.apply(bidirectional_lstm<D>(),
                   {{D::dy, g.input("dy", {4, 2, 4}, f32)},
                    {D::weights, g.input("weights", {kWeights}, f32)},
                    {D::reserve, g.input("reserve", {4, 4, 2, 20}, f32)},
                    {D::cx, g.input("cx", {4, 2, 3}, f32)},
                    {D::dhy, g.input("dhy", {4, 2, 2}, f32)},
                    {D::seq_lengths, g.input("lengths", {2}, i32)},
                    {D::dropout_seed, g.input("seed", {1}, i64)}},
                   {D::dhx, D::dcx, D::dgates});
  });
  sample(samples, "rnn_backward_weights", [](Graph& g) {
    return g.apply(bidirectional_lstm<W>(),
                   {{W::x, g.input("x", {4, 2, 5}, f32)},
                    {W::reserve, g.input("reserve", {4, 4, 2, 20}, f32)},
                    {W::dgates, g.input("dgates", {4, 4, 2, 14}, f32)},
                    {W::hx, g.input("hx", {4, 2, 2}, f32)},
                    {W::dropout_seed, g.input("seed", {1}, i64)},
                    {W::previous, g.input("previous", {kWeights}, f32)}},
                   {});
  });
}

}  // namespace ashlar::tests
