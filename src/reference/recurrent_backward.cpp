// Backward-data of recurrent networks: layers from last to first, steps in reverse order of the
// direction.
#include "reference/recurrent.hpp"

namespace ashlar::reference {

namespace {

template <class Operands>
class BackwardData {
 public:
  using Rnn = RnnBackwardData;
  using Scalar = typename Operands::Scalar;

  BackwardData(const Rnn& op, const Operands& operands)
      : problem_(op, operands),
        shape_(problem_.shape),
        weights_(operands.input(Rnn::weights)),
        reserve_(operands.input(Rnn::reserve)),
        outputs_(problem_.scratch.numbers()),
        gates_(outputs_ + 2 * shape_.rows * shape_.layer_output()),
        sequence_numbers_(gates_ + shape_.directions * shape_.rows * shape_.dgates_width()) {}

  void run() {
    parallel_for(shape_.batch, [&](std::int64_t n) { sequence(n); });
    const Operands& operands = problem_.operands;
    if (operands.has_output(Rnn::dx))
      problem_.fill_unused_rows(operands.output(Rnn::dx), shape_.input, 0.0);
    if (operands.has_output(Rnn::dgates))
      problem_.clear_unused_records(operands.output(Rnn::dgates), shape_.dgates_width());
  }

 private:
  void sequence(std::int64_t n) {
    const Operands& operands = problem_.operands;
    const std::int64_t length = problem_.sequences.length(n);
    for (std::int64_t step = 0; step < length; ++step) {
      const std::int64_t row = problem_.sequences.row(step, n);
      for (std::int64_t j = 0; j < shape_.layer_output(); ++j)
        d_output(shape_.layers - 1, row)[j] = operands.input(Rnn::dy).load(problem_.place(row, j));
    }
    for (std::int64_t layer = shape_.layers - 1; layer >= 0; --layer) {
      for (std::int64_t direction = 0; direction < shape_.directions; ++direction)
        direction_gradients(layer, direction, n);
      for (std::int64_t step = 0; step < length; ++step)
        input_gradients(layer, problem_.sequences.row(step, n));
    }
  }

  // The gradients of a layer's output for a row; double-buffered with the layer above.
  Scalar* d_output(std::int64_t layer, std::int64_t row) const {
    return outputs_ + (layer % 2 * shape_.rows + row) * shape_.layer_output();
  }
  Scalar* d_gates(std::int64_t direction, std::int64_t row) const {
    return gates_ + (direction * shape_.rows + row) * shape_.dgates_width();
  }
  Scalar weight(const RnnMatrix& matrix, std::int64_t row, std::int64_t column) const {
    return weights_.load({matrix.offset + row * matrix.columns + column});
  }

  void direction_gradients(std::int64_t layer, std::int64_t direction, std::int64_t n) {
    const Operands& operands = problem_.operands;
    const RnnWeights at = shape_.weights(layer, direction);
    const std::int64_t p = layer * shape_.directions + direction;
    const std::int64_t length = problem_.sequences.length(n);
    Scalar* d_state =
        sequence_numbers_ + n * rnn_numbers_per_sequence(shape_);  // of a step's output
    Scalar* d_hidden = d_state + shape_.output();
    Scalar* d_cell = d_hidden + shape_.hidden;
    for (std::int64_t j = 0; j < shape_.output(); ++j)
      d_state[j] = problem_.initial(Rnn::dhy, p, n, j);
    for (std::int64_t j = 0; j < shape_.hidden; ++j)
      d_cell[j] = problem_.initial(Rnn::dcy, p, n, j);
    for (std::int64_t i = length - 1; i >= 0; --i) {
      const std::int64_t step = direction == 0 ? i : length - 1 - i;
      const std::int64_t row = problem_.sequences.row(step, n);
      Scalar* gates = d_gates(direction, row);
      for (std::int64_t j = 0; j < shape_.output(); ++j)
        d_state[j] = d_state[j] + d_output(layer, row)[direction * shape_.output() + j];
      if (at.projection.present()) {
        for (std::int64_t k = 0; k < shape_.projection; ++k)
          gates[shape_.projected_gradient() + k] = d_state[k];
        for (std::int64_t j = 0; j < shape_.hidden; ++j) {
          Accumulator<Scalar> sum;
          for (std::int64_t k = 0; k < shape_.projection; ++k)
            sum.add(weight(at.projection, k, j) * d_state[k]);
          d_hidden[j] = sum.total();
        }
      } else {
        for (std::int64_t j = 0; j < shape_.hidden; ++j) d_hidden[j] = d_state[j];
      }
      for (std::int64_t j = 0; j < shape_.hidden; ++j)
        cell_gradients({p, direction, n, step, row, j}, d_hidden, d_cell, gates);
      for (std::int64_t j = 0; j < shape_.output(); ++j) {
        Accumulator<Scalar> sum;
        for (std::int64_t unit = 0; unit < shape_.gate_rows(); ++unit)
          sum.add(weight(at.recurrent, unit, j) * recurrent_gradient(p, row, gates, unit));
        // h = (1 - z) n + z h'
        if (shape_.mode == RnnMode::gru) sum.add(d_hidden[j] * gate(p, row, 1, j));
        d_state[j] = sum.total();
      }
      if (operands.has_output(Rnn::dgates))
        for (std::int64_t j = 0; j < shape_.dgates_width(); ++j)
          operands.output(Rnn::dgates).store(problem_.record(p, row, j), gates[j]);
    }
    if (operands.has_output(Rnn::dhx))
      for (std::int64_t j = 0; j < shape_.output(); ++j)
        operands.output(Rnn::dhx).store({p, n, j}, d_state[j]);
    if (operands.has_output(Rnn::dcx))
      for (std::int64_t j = 0; j < shape_.hidden; ++j)
        operands.output(Rnn::dcx).store({p, n, j}, d_cell[j]);
  }

  struct Unit {
    std::int64_t pseudo_layer, direction, n, step, row, j;
  };
  Scalar kept_state(std::int64_t p, std::int64_t row, std::int64_t at) const {
    return reserve_.load(problem_.record(p, row, at));
  }
  Scalar gate(std::int64_t p, std::int64_t row, std::int64_t number, std::int64_t j) const {
    return kept_state(p, row, number * shape_.hidden + j);
  }
  // A state of the previous step, at offset `at` of its record, or the initial state.
  Scalar previous(const Unit& unit, std::int64_t at, int input) const {
    const std::int64_t before = problem_.before(unit.step, unit.direction);
    if (!problem_.sequences.runs(before, unit.n))
      return problem_.initial(input, unit.pseudo_layer, unit.n, unit.j);
    return kept_state(unit.pseudo_layer, problem_.sequences.row(before, unit.n), at + unit.j);
  }
  // In a GRU, the gradient of the new gate reaches R h through the reset gate.
  Scalar recurrent_gradient(std::int64_t p, std::int64_t row, const Scalar* gates,
                            std::int64_t unit) const {
    const std::int64_t j = unit - 2 * shape_.hidden;
    if (shape_.mode != RnnMode::gru || j < 0) return gates[unit];
    return gates[unit] * gate(p, row, 0, j);
  }
  // A clipped cell state propagates no gradient.
  Scalar through_clip(Scalar gradient, Scalar c) const {
    const Rnn& op = problem_.op;
    const auto held = [&](double bound) { return Scalar(round_to(reserve_.dtype(), bound)); };
    if (op.clip_low) gradient = select(less(held(*op.clip_low), c), gradient, Scalar(0.0));
    if (op.clip_high) gradient = select(less(c, held(*op.clip_high)), gradient, Scalar(0.0));
    return gradient;
  }

  void cell_gradients(const Unit& unit, const Scalar* d_hidden, Scalar* d_cell,
                      Scalar* gates) const {
    const Scalar one(1.0);
    const std::int64_t hidden = shape_.hidden, j = unit.j, p = unit.pseudo_layer, row = unit.row;
    const Scalar dh = d_hidden[j];
    switch (shape_.mode) {
      case RnnMode::relu:
        gates[j] = select(less(Scalar(0.0), gate(p, row, 0, j)), dh, Scalar(0.0));
        break;
      case RnnMode::tanh: {
        const Scalar h = gate(p, row, 0, j);
        gates[j] = dh * (one - h * h);
        break;
      }
      case RnnMode::lstm: {
        const Scalar i = gate(p, row, 0, j), f = gate(p, row, 1, j), g = gate(p, row, 2, j),
                     o = gate(p, row, 3, j), c = kept_state(p, row, shape_.cell() + j);
        const Scalar t = tanh(c);
        const Scalar dc = through_clip(d_cell[j] + dh * o * (one - t * t), c);
        gates[j] = dc * g * i * (one - i);
        gates[hidden + j] = dc * previous(unit, shape_.cell(), Rnn::cx) * f * (one - f);
        gates[2 * hidden + j] = dc * i * (one - g * g);
        gates[3 * hidden + j] = dh * t * o * (one - o);
        d_cell[j] = dc * f;
        break;
      }
      case RnnMode::gru: {
        const Scalar r = gate(p, row, 0, j), z = gate(p, row, 1, j), candidate = gate(p, row, 2, j);
        const Scalar m = kept_state(p, row, shape_.recurrent_new() + j);
        const Scalar before = previous(unit, shape_.hidden_state(), Rnn::hx);
        const Scalar dn = dh * (one - z) * (one - candidate * candidate);
        gates[j] = dn * m * r * (one - r);
        gates[hidden + j] = dh * (before - candidate) * z * (one - z);
        gates[2 * hidden + j] = dn;
        break;
      }
    }
  }

  // Both directions add to the gradient of a layer's input.
  void input_gradients(std::int64_t layer, std::int64_t row) {
    const Operands& operands = problem_.operands;
    if (layer == 0 && !operands.has_output(Rnn::dx)) return;
    for (std::int64_t i = 0; i < shape_.layer_input(layer); ++i) {
      Accumulator<Scalar> sum;
      for (std::int64_t direction = 0; direction < shape_.directions; ++direction) {
        const RnnMatrix matrix = shape_.weights(layer, direction).input;
        const Scalar* gates = d_gates(direction, row);
        if (matrix.present())
          for (std::int64_t unit = 0; unit < shape_.gate_rows(); ++unit)
            sum.add(weight(matrix, unit, i) * gates[unit]);
        else
          for (std::int64_t k = 0; k < shape_.gates(); ++k) sum.add(gates[k * shape_.hidden + i]);
      }
      if (layer == 0)
        operands.output(Rnn::dx).store(problem_.place(row, i), sum.total());
      else
        d_output(layer - 1, row)[i] = problem_.kept(sum.total(), layer - 1, row, i);
    }
  }

  RnnProblem<Rnn, Operands> problem_;
  const RnnShape& shape_;
  typename Operands::View weights_, reserve_;
  Scalar* outputs_;           // gradients of two layers' outputs, [rows, layer output] each
  Scalar* gates_;             // [directions, rows, dgates_width]
  Scalar* sequence_numbers_;  // [batch, rnn_numbers_per_sequence]
};

}  // namespace

template <class Operands>
void evaluate(const RnnBackwardData& op, const Operands& operands) {
  BackwardData<Operands>(op, operands).run();
}

ASHLAR_REFERENCE_WITH_SCRATCH(RnnBackwardData, rnn_need);

}  // namespace ashlar::reference
