// Extents of a recurrent network and the layout of its weights, `reserve` and `dgates`: the single
// definition of what docs/ops/recurrent.md specifies.
#pragma once

#include <algorithm>
#include <ashlar/ops.hpp>

#include "base/checked.hpp"

namespace ashlar {

// A row-major matrix in the flat weight tensor; absent if rows is 0.
struct RnnMatrix {
  std::int64_t offset = 0, rows = 0, columns = 0;

  bool present() const { return rows > 0; }
  std::int64_t size() const { return rows * columns; }
};

// The parameters of one pseudo-layer (a direction of a layer). Matrices and biases of the gates are
// concatenated along rows.
struct RnnWeights {
  RnnMatrix input;       // [gates * hidden, input of the layer]
  RnnMatrix recurrent;   // [gates * hidden, output]
  RnnMatrix projection;  // [projection, hidden]
  RnnMatrix input_bias;  // [gates * hidden, 1]
  RnnMatrix recurrent_bias;
};

constexpr std::int64_t rnn_gate_count(RnnMode mode) {
  return mode == RnnMode::lstm ? 4 : mode == RnnMode::gru ? 3 : 1;
}

struct RnnShape {
  RnnMode mode = RnnMode::lstm;
  RnnBias bias = RnnBias::both;
  bool skip = false;    // no input matrices in the first layer
  bool packed = false;  // rows without padding
  std::int64_t layers = 1, directions = 1;
  std::int64_t hidden = 0, projection = 0;  // projection 0: none
  std::int64_t input = 0;                   // features of x
  std::int64_t steps = 0;                   // T; packed: at most as many as rows
  std::int64_t batch = 0;
  std::int64_t rows = 0;  // T * N; packed: the first extent of x

  // `sequence` are the dims of x, y or their gradients; `batch_size` is used by packed layouts
  // only.
  RnnShape(const RnnAttributes& op, const Dims& sequence, std::int64_t batch_size,
           std::int64_t input_size)
      : mode(op.mode),
        bias(op.bias),
        skip(op.input == RnnInput::skip),
        packed(op.layout == RnnLayout::packed),
        layers(op.layers),
        directions(op.bidirectional ? 2 : 1),
        hidden(op.hidden_size),
        projection(op.projection_size),
        input(input_size),
        steps(sequence[0]),
        batch(packed ? batch_size : sequence[1]),
        rows(packed ? sequence[0] : checked_mul(sequence[0], sequence[1])) {}

  std::int64_t gates() const { return rnn_gate_count(mode); }
  std::int64_t gate_rows() const { return checked_mul(gates(), hidden); }
  std::int64_t output() const { return projection > 0 ? projection : hidden; }
  std::int64_t layer_output() const { return checked_mul(directions, output()); }
  std::int64_t layer_input(std::int64_t layer) const { return layer == 0 ? input : layer_output(); }
  std::int64_t pseudo_layers() const { return checked_mul(layers, directions); }
  bool has_input_bias() const { return bias == RnnBias::input || bias == RnnBias::both; }
  bool has_recurrent_bias() const { return bias == RnnBias::recurrent || bias == RnnBias::both; }

  // --- the flat weight tensor: the matrices of all pseudo-layers, then the biases of all
  std::int64_t weight_count() const {
    return checked_add(matrices_before(pseudo_layers()),
                       checked_mul(pseudo_layers(), bias_count()));
  }
  RnnWeights weights(std::int64_t layer, std::int64_t direction) const {
    const std::int64_t pseudo_layer = layer * directions + direction;
    std::int64_t start = matrices_before(pseudo_layer);
    const auto place = [&](bool present, std::int64_t matrix_rows, std::int64_t columns) {
      const RnnMatrix matrix{start, present ? matrix_rows : 0, columns};
      start += matrix.size();
      return matrix;
    };
    RnnWeights at;
    at.input = place(has_input_matrix(layer), gate_rows(), layer_input(layer));
    at.recurrent = place(true, gate_rows(), output());
    at.projection = place(projection > 0, projection, hidden);
    start = matrices_before(pseudo_layers()) + pseudo_layer * bias_count();
    at.input_bias = place(has_input_bias(), gate_rows(), 1);
    at.recurrent_bias = place(has_recurrent_bias(), gate_rows(), 1);
    return at;
  }
  // Elements of one pseudo-layer.
  std::int64_t matrix_count(std::int64_t layer) const {
    const std::int64_t columns =
        checked_add(has_input_matrix(layer) ? layer_input(layer) : 0, output());
    return checked_add(checked_mul(gate_rows(), columns), checked_mul(projection, hidden));
  }
  std::int64_t bias_count() const {
    return checked_mul(gate_rows(), (has_input_bias() ? 1 : 0) + (has_recurrent_bias() ? 1 : 0));
  }
  // Elements of the matrices of the first `count` pseudo-layers.
  std::int64_t matrices_before(std::int64_t count) const {
    const std::int64_t first = std::min(count, directions);
    return checked_add(checked_mul(first, matrix_count(0)),
                       count == first ? 0 : checked_mul(count - first, matrix_count(1)));
  }

  // --- a record of `reserve`, one per pseudo-layer and row: the gates after their activation, then
  // lstm: cell state (clipped), hidden state [, projected output]
  // gru:  R h + b of the new gate, hidden state
  // relu and tanh: the only gate is the hidden state.
  std::int64_t cell() const { return 4 * hidden; }
  std::int64_t recurrent_new() const { return 3 * hidden; }
  std::int64_t hidden_state() const {
    return mode == RnnMode::lstm ? 5 * hidden : mode == RnnMode::gru ? 4 * hidden : 0;
  }
  std::int64_t output_state() const { return hidden_state() + (projection > 0 ? hidden : 0); }
  std::int64_t reserve_width() const {
    checked_mul(7, hidden);  // the widest record has six states and an output
    return checked_add(output_state(), output());
  }

  // --- a record of `dgates`: gradients before the activations [, that of the projected output]
  std::int64_t projected_gradient() const { return gate_rows(); }
  std::int64_t dgates_width() const { return checked_add(gate_rows(), projection); }

  // Dims of `reserve` or `dgates`.
  Dims records(std::int64_t width) const {
    if (packed) return {pseudo_layers(), rows, width};
    return {pseudo_layers(), steps, batch, width};
  }
  Dims sequence(std::int64_t features) const {
    if (packed) return {rows, features};
    return {steps, batch, features};
  }
  Dims state(std::int64_t width) const { return {pseudo_layers(), batch, width}; }

  // FLOPs of the forward pass, 2 per multiply-add; each backward pass has as many.
  double flops() const {
    double per_row = 0;
    for (std::int64_t layer = 0; layer < std::min<std::int64_t>(layers, 2); ++layer) {
      const RnnWeights at = weights(layer, 0);
      per_row += static_cast<double>(at.input.size() + at.recurrent.size() + at.projection.size()) *
                 static_cast<double>(layer == 0 ? 1 : layers - 1);
    }
    return 2.0 * per_row * static_cast<double>(directions) * static_cast<double>(rows);
  }

 private:
  bool has_input_matrix(std::int64_t layer) const { return !(skip && layer == 0); }
};

// The number of features of x that yields `count` weights, or -1 if there is none.
inline std::int64_t rnn_input_size(const RnnAttributes& op, std::int64_t count) {
  if (op.input == RnnInput::skip) return op.hidden_size;
  const std::int64_t fixed = RnnShape(op, {0, 0, 0}, 0, 0).weight_count();
  const std::int64_t per_feature =
      checked_mul(op.bidirectional ? 2 : 1, checked_mul(rnn_gate_count(op.mode), op.hidden_size));
  return count < fixed || (count - fixed) % per_feature != 0 ? -1 : (count - fixed) / per_feature;
}

// One gate's matrix and bias, by the numbers cuDNN gives them: 0 .. gates - 1 multiply the input,
// gates .. 2 gates - 1 the hidden state; 2 gates is the projection. lstm: input, forget, new,
// output; gru: reset, update, new.
struct RnnParameter {
  RnnMatrix matrix, bias;
};
inline RnnParameter rnn_parameter(const RnnShape& shape, std::int64_t layer, std::int64_t direction,
                                  std::int64_t number) {
  const RnnWeights at = shape.weights(layer, direction);
  const std::int64_t gates = shape.gates();
  if (number == 2 * gates) return {at.projection, {}};
  const auto gate = [&](RnnMatrix all) {
    if (!all.present()) return all;
    return RnnMatrix{all.offset + number % gates * shape.hidden * all.columns, shape.hidden,
                     all.columns};
  };
  return number < gates ? RnnParameter{gate(at.input), gate(at.input_bias)}
                        : RnnParameter{gate(at.recurrent), gate(at.recurrent_bias)};
}

}  // namespace ashlar
