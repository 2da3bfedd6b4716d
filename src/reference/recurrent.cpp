// Recurrent networks, one sequence at a time: by layer, direction and step. docs/ops/recurrent.md
// has the formulas.
#include "reference/recurrent.hpp"

namespace ashlar::reference {

namespace {

bool is_surely_nan(double x) { return std::isnan(x); }
template <Arithmetic A>
bool is_surely_nan(Approx<A> x) {
  return std::isnan(x.value) && !x.unknown();
}

template <class Operands>
class Forward {
 public:
  using Rnn = RnnForward;
  using Scalar = typename Operands::Scalar;

  Forward(const Rnn& op, const Operands& operands)
      : problem_(op, operands),
        shape_(problem_.shape),
        weights_(operands.input(Rnn::weights)),
        layer_outputs_(problem_.scratch.numbers()),
        sequence_numbers_(layer_outputs_ + 2 * shape_.rows * shape_.layer_output()) {}

  void run() {
    parallel_for(shape_.batch, [&](std::int64_t n) { sequence(n); });
    const Operands& operands = problem_.operands;
    if (operands.has_output(Rnn::y))
      problem_.fill_unused_rows(operands.output(Rnn::y), shape_.layer_output(),
                                problem_.op.padding_value);
    if (operands.has_output(Rnn::reserve))
      problem_.clear_unused_records(operands.output(Rnn::reserve), shape_.reserve_width());
  }

 private:
  void sequence(std::int64_t n) {
    const Operands& operands = problem_.operands;
    const std::int64_t length = problem_.sequences.length(n);
    Scalar* record = sequence_numbers_ + n * rnn_numbers_per_sequence(shape_);
    Scalar* state = record + shape_.reserve_width();
    Scalar* cell = state + shape_.output();
    for (std::int64_t layer = 0; layer < shape_.layers; ++layer)
      for (std::int64_t direction = 0; direction < shape_.directions; ++direction) {
        const std::int64_t p = layer * shape_.directions + direction;
        for (std::int64_t j = 0; j < shape_.output(); ++j)
          state[j] = problem_.initial(Rnn::hx, p, n, j);
        for (std::int64_t j = 0; j < shape_.hidden; ++j)
          cell[j] = problem_.initial(Rnn::cx, p, n, j);
        for (std::int64_t i = 0; i < length; ++i) {
          const std::int64_t row = problem_.sequences.row(direction == 0 ? i : length - 1 - i, n);
          step(layer, direction, row, state, cell, record);
          for (std::int64_t j = 0; j < shape_.output(); ++j) {
            state[j] = record[shape_.output_state() + j];
            output(layer, row)[direction * shape_.output() + j] = state[j];
          }
          if (shape_.mode == RnnMode::lstm)
            for (std::int64_t j = 0; j < shape_.hidden; ++j) cell[j] = record[shape_.cell() + j];
          if (operands.has_output(Rnn::reserve))
            for (std::int64_t j = 0; j < shape_.reserve_width(); ++j)
              operands.output(Rnn::reserve).store(problem_.record(p, row, j), record[j]);
        }
        if (operands.has_output(Rnn::hy))
          for (std::int64_t j = 0; j < shape_.output(); ++j)
            operands.output(Rnn::hy).store({p, n, j}, state[j]);
        if (operands.has_output(Rnn::cy))
          for (std::int64_t j = 0; j < shape_.hidden; ++j)
            operands.output(Rnn::cy).store({p, n, j}, cell[j]);
      }
    if (!operands.has_output(Rnn::y)) return;
    for (std::int64_t step = 0; step < length; ++step) {
      const std::int64_t row = problem_.sequences.row(step, n);
      for (std::int64_t j = 0; j < shape_.layer_output(); ++j)
        operands.output(Rnn::y).store(problem_.place(row, j), output(shape_.layers - 1, row)[j]);
    }
  }

  // The outputs of a layer for a row; double-buffered with the layer below.
  Scalar* output(std::int64_t layer, std::int64_t row) const {
    return layer_outputs_ + (layer % 2 * shape_.rows + row) * shape_.layer_output();
  }

  // Adds the dot product of matrix row `unit` with the layer's input, and the bias.
  void add_input(Accumulator<Scalar>& sum, const RnnWeights& at, std::int64_t layer,
                 std::int64_t row, std::int64_t unit) const {
    const auto x = [&](std::int64_t i) {
      return layer == 0 ? problem_.operands.input(Rnn::x).load(problem_.place(row, i))
                        : problem_.kept(output(layer - 1, row)[i], layer - 1, row, i);
    };
    if (at.input.present())
      for (std::int64_t i = 0; i < at.input.columns; ++i) sum.add(weight(at.input, unit, i) * x(i));
    else
      sum.add(x(unit % shape_.hidden));
    if (at.input_bias.present()) sum.add(weight(at.input_bias, unit, 0));
  }
  void add_recurrent(Accumulator<Scalar>& sum, const RnnWeights& at, const Scalar* state,
                     std::int64_t unit) const {
    for (std::int64_t j = 0; j < shape_.output(); ++j)
      sum.add(weight(at.recurrent, unit, j) * state[j]);
    if (at.recurrent_bias.present()) sum.add(weight(at.recurrent_bias, unit, 0));
  }
  Scalar weight(const RnnMatrix& matrix, std::int64_t row, std::int64_t column) const {
    return weights_.load({matrix.offset + row * matrix.columns + column});
  }

  // Computes `record` from the previous state and cell.
  void step(std::int64_t layer, std::int64_t direction, std::int64_t row, const Scalar* state,
            const Scalar* cell, Scalar* record) const {
    const RnnWeights at = shape_.weights(layer, direction);
    const std::int64_t hidden = shape_.hidden;
    // The pre-activation of gate `gate` of a unit.
    const auto gate_sum = [&](std::int64_t gate, std::int64_t j) {
      Accumulator<Scalar> sum;
      add_input(sum, at, layer, row, gate * hidden + j);
      add_recurrent(sum, at, state, gate * hidden + j);
      return sum.total();
    };
    for (std::int64_t j = 0; j < hidden; ++j) {
      switch (shape_.mode) {
        case RnnMode::relu: record[j] = maximum(gate_sum(0, j), Scalar(0.0)); break;
        case RnnMode::tanh: record[j] = tanh(gate_sum(0, j)); break;
        case RnnMode::lstm: {
          const Scalar i = sigmoid(gate_sum(0, j)), f = sigmoid(gate_sum(1, j));
          const Scalar g = tanh(gate_sum(2, j)), o = sigmoid(gate_sum(3, j));
          const Scalar c = clipped(f * cell[j] + i * g);
          record[j] = i, record[hidden + j] = f, record[2 * hidden + j] = g;
          record[3 * hidden + j] = o;
          record[shape_.cell() + j] = c;
          record[shape_.hidden_state() + j] = o * tanh(c);
          break;
        }
        case RnnMode::gru: {
          const Scalar r = sigmoid(gate_sum(0, j)), z = sigmoid(gate_sum(1, j));
          Accumulator<Scalar> from_input, from_state;
          add_input(from_input, at, layer, row, 2 * hidden + j);
          add_recurrent(from_state, at, state, 2 * hidden + j);
          const Scalar m = from_state.total();
          const Scalar candidate = tanh(from_input.total() + r * m);
          record[j] = r, record[hidden + j] = z, record[2 * hidden + j] = candidate;
          record[shape_.recurrent_new() + j] = m;
          record[shape_.hidden_state() + j] = (Scalar(1.0) - z) * candidate + z * state[j];
          break;
        }
      }
    }
    if (!at.projection.present()) return;
    for (std::int64_t k = 0; k < shape_.projection; ++k) {
      Accumulator<Scalar> sum;
      for (std::int64_t j = 0; j < hidden; ++j)
        sum.add(weight(at.projection, k, j) * record[shape_.hidden_state() + j]);
      record[shape_.output_state() + k] = sum.total();
    }
  }

  Scalar clipped(Scalar c) const {
    const Rnn& op = problem_.op;
    if (op.clip_nan && is_surely_nan(c)) return Scalar(*op.clip_low);
    if (op.clip_high) c = minimum(c, Scalar(*op.clip_high));
    if (op.clip_low) c = maximum(c, Scalar(*op.clip_low));
    return c;
  }

  RnnProblem<Rnn, Operands> problem_;
  const RnnShape& shape_;
  typename Operands::View weights_;
  Scalar* layer_outputs_;     // of two layers, [rows, layer output] each
  Scalar* sequence_numbers_;  // [batch, rnn_numbers_per_sequence]
};

// Every element of dweights is a sum over the rows.
template <class Operands>
class BackwardWeights {
 public:
  using Rnn = RnnBackwardWeights;
  using Scalar = typename Operands::Scalar;

  BackwardWeights(const Rnn& op, const Operands& operands)
      : problem_(op, operands),
        shape_(problem_.shape),
        reserve_(operands.input(Rnn::reserve)),
        dgates_(operands.input(Rnn::dgates)) {}

  void run() const {
    for (std::int64_t layer = 0; layer < shape_.layers; ++layer)
      for (std::int64_t direction = 0; direction < shape_.directions; ++direction) {
        const RnnWeights at = shape_.weights(layer, direction);
        const std::int64_t p = layer * shape_.directions + direction;
        const auto gate = [&](std::int64_t row, std::int64_t unit) {
          return dgates_.load(problem_.record(p, row, unit));
        };
        // The gradient of R h: in a GRU, that of the new gate is multiplied by the reset gate.
        const auto recurrent = [&](std::int64_t row, std::int64_t unit) {
          const std::int64_t j = unit - 2 * shape_.hidden;
          if (shape_.mode != RnnMode::gru || j < 0) return gate(row, unit);
          return gate(row, unit) * reserve_.load(problem_.record(p, row, j));
        };
        sum_into(at.input, [&](std::int64_t, std::int64_t, std::int64_t row, std::int64_t unit,
                               std::int64_t i) { return gate(row, unit) * input(layer, row, i); });
        sum_into(at.recurrent, [&](std::int64_t n, std::int64_t step, std::int64_t row,
                                   std::int64_t unit, std::int64_t j) {
          return recurrent(row, unit) * previous_output(p, direction, n, step, j);
        });
        sum_into(at.projection,
                 [&](std::int64_t, std::int64_t, std::int64_t row, std::int64_t k, std::int64_t j) {
                   return gate(row, shape_.projected_gradient() + k) *
                          reserve_.load(problem_.record(p, row, shape_.hidden_state() + j));
                 });
        sum_into(at.input_bias, [&](std::int64_t, std::int64_t, std::int64_t row, std::int64_t unit,
                                    std::int64_t) { return gate(row, unit); });
        sum_into(at.recurrent_bias,
                 [&](std::int64_t, std::int64_t, std::int64_t row, std::int64_t unit,
                     std::int64_t) { return recurrent(row, unit); });
      }
  }

 private:
  // Each element of the matrix is the sum of term(n, step, row of the sequence, row, column).
  template <class Term>
  void sum_into(const RnnMatrix& matrix, const Term& term) const {
    const Operands& operands = problem_.operands;
    parallel_for(matrix.rows * matrix.columns, [&](std::int64_t i) {
      Accumulator<Scalar> sum;
      for (std::int64_t n = 0; n < shape_.batch; ++n)
        for (std::int64_t step = 0; step < problem_.sequences.length(n); ++step)
          sum.add(term(n, step, problem_.sequences.row(step, n), i / matrix.columns,
                       i % matrix.columns));
      if (operands.has_input(Rnn::previous))
        sum.add(operands.input(Rnn::previous).load({matrix.offset + i}));
      operands.output(Rnn::dweights).store({matrix.offset + i}, sum.total());
    });
  }

  Scalar input(std::int64_t layer, std::int64_t row, std::int64_t i) const {
    if (layer == 0) return problem_.operands.input(Rnn::x).load(problem_.place(row, i));
    const std::int64_t below = (layer - 1) * shape_.directions + i / shape_.output();
    const Scalar y =
        reserve_.load(problem_.record(below, row, shape_.output_state() + i % shape_.output()));
    return problem_.kept(y, layer - 1, row, i);
  }

  Scalar previous_output(std::int64_t p, std::int64_t direction, std::int64_t n, std::int64_t step,
                         std::int64_t j) const {
    const std::int64_t before = problem_.before(step, direction);
    if (!problem_.sequences.runs(before, n)) return problem_.initial(Rnn::hx, p, n, j);
    return reserve_.load(
        problem_.record(p, problem_.sequences.row(before, n), shape_.output_state() + j));
  }

  RnnProblem<Rnn, Operands> problem_;
  const RnnShape& shape_;
  typename Operands::View reserve_, dgates_;
};

}  // namespace

template <class Operands>
void evaluate(const RnnForward& op, const Operands& operands) {
  Forward<Operands>(op, operands).run();
}

template <class Operands>
void evaluate(const RnnBackwardWeights& op, const Operands& operands) {
  if (operands.has_output(RnnBackwardWeights::dweights))
    BackwardWeights<Operands>(op, operands).run();
}

ASHLAR_REFERENCE_WITH_SCRATCH(RnnForward, rnn_need);
ASHLAR_REFERENCE_WITH_SCRATCH(RnnBackwardWeights, rnn_need);

}  // namespace ashlar::reference
