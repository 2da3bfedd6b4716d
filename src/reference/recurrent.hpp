// Shared by the loop nests of the recurrent operations: extents, sequences, and access to weights,
// records and states.
#pragma once

#include "base/dropout.hpp"
#include "graph/rnn_sequences.hpp"
#include "reference/evaluate.hpp"
#include "reference/scratch.hpp"

namespace ashlar::reference {

// dims(slot) are those of an input.
template <class Rnn, class DimsOf>
RnnShape rnn_shape(const Rnn& op, const DimsOf& dims) {
  const Dims sequence = dims(0);  // x or dy
  std::int64_t batch = 0, input = sequence[sequence.rank() - 1];
  if (op.layout == RnnLayout::packed) batch = dims(Rnn::seq_lengths)[0];
  if constexpr (std::is_same_v<Rnn, RnnBackwardData>)
    input = rnn_input_size(op, dims(Rnn::weights)[0]);
  return {op, sequence, batch, input};
}

// Scratch values per sequence: forward, a record, the state and the cell; backward, the gradients
// of output, hidden state, cell and previous state.
inline std::int64_t rnn_numbers_per_sequence(const RnnShape& shape) {
  return shape.reserve_width() + 4 * shape.hidden + 2 * shape.output();
}

// The outputs of two layers and the scratch values of every sequence.
inline ScratchNeed rnn_scratch(const RnnForward&, const RnnShape& shape) {
  return {2 * shape.rows * shape.layer_output() + shape.batch * rnn_numbers_per_sequence(shape),
          RnnSequences::integers(shape)};
}
// The gradients of a layer's output and input, and of its gates.
inline ScratchNeed rnn_scratch(const RnnBackwardData&, const RnnShape& shape) {
  return {shape.rows * (2 * shape.layer_output() + shape.directions * shape.dgates_width()) +
              shape.batch * rnn_numbers_per_sequence(shape),
          RnnSequences::integers(shape)};
}
inline ScratchNeed rnn_scratch(const RnnBackwardWeights&, const RnnShape& shape) {
  return {0, RnnSequences::integers(shape)};
}
template <class Rnn>
ScratchNeed rnn_need(const Rnn& op, const InputDims& dims) {
  return rnn_scratch(op, rnn_shape(op, dims));
}

template <class Rnn, class Operands>
class RnnProblem {
 public:
  using Scalar = typename Operands::Scalar;
  using View = typename Operands::View;

  RnnProblem(const Rnn& network, const Operands& given)
      : op(network),
        operands(given),
        shape(rnn_shape(op, [&](int slot) { return given.input(slot).dims(); })),
        scratch(given, rnn_scratch(op, shape)),
        sequences(shape, scratch.integers(), [&](std::int64_t n) {
          if (!given.has_input(Rnn::seq_lengths)) return shape.steps;
          return whole(nominal(given.input(Rnn::seq_lengths).load({n})));
        }) {
    if (operands.has_input(Rnn::dropout_seed))
      seed_ = static_cast<std::uint64_t>(operands.integer(Rnn::dropout_seed));
    if (operands.has_input(Rnn::dropout_offset))
      offset_ = static_cast<std::uint64_t>(operands.integer(Rnn::dropout_offset));
  }

  // Coordinates of a feature in x and y, and in the records.
  Index place(std::int64_t row, std::int64_t feature) const {
    if (shape.packed) return {row, feature};
    return {row / shape.batch, row % shape.batch, feature};
  }
  Index record(std::int64_t pseudo_layer, std::int64_t row, std::int64_t at) const {
    if (shape.packed) return {pseudo_layer, row, at};
    return {pseudo_layer, row / shape.batch, row % shape.batch, at};
  }

  // The step before `step` in the direction's order; may be outside the sequence.
  static std::int64_t before(std::int64_t step, std::int64_t direction) {
    return direction == 0 ? step - 1 : step + 1;
  }
  // An initial state, zero where there is none.
  Scalar initial(int input, std::int64_t pseudo_layer, std::int64_t n, std::int64_t unit) const {
    return operands.has_input(input) ? operands.input(input).load({pseudo_layer, n, unit})
                                     : Scalar(0.0);
  }

  // Dropout of a layer's output before the next layer.
  Scalar kept(Scalar value, std::int64_t layer, std::int64_t row, std::int64_t feature) const {
    if (op.dropout == 0.0) return value;
    const std::int64_t index = (layer * shape.rows + row) * shape.layer_output() + feature;
    return dropout_keeps(seed_, offset_, static_cast<std::uint64_t>(index), op.dropout)
               ? value * Scalar(1.0 / (1.0 - op.dropout))
               : Scalar(0.0);
  }

  // Fills all features of rows without a step with `value`.
  void fill_unused_rows(const View& view, std::int64_t features, double value) const {
    for_each_unused_row([&](std::int64_t row) {
      for (std::int64_t j = 0; j < features; ++j) view.store(place(row, j), Scalar(value));
    });
  }
  void clear_unused_records(const View& view, std::int64_t width) const {
    for_each_unused_row([&](std::int64_t row) {
      for (std::int64_t p = 0; p < shape.pseudo_layers(); ++p)
        for (std::int64_t j = 0; j < width; ++j) view.store(record(p, row, j), Scalar(0.0));
    });
  }

  const Rnn& op;
  const Operands& operands;
  const RnnShape shape;
  Scratch<Operands> scratch;
  const RnnSequences sequences;

 private:
  static std::int64_t whole(double length) {
    constexpr double kMost = 0x1p62;
    return static_cast<std::int64_t>(std::clamp(length, -kMost, kMost));
  }
  template <class Body>
  void for_each_unused_row(const Body& body) const {
    for (std::int64_t row = 0; row < shape.rows; ++row) {
      const bool used = shape.packed ? row < sequences.used_rows()
                                     : sequences.runs(row / shape.batch, row % shape.batch);
      if (!used) body(row);
    }
  }

  std::uint64_t seed_ = 0, offset_ = 0;
};

}  // namespace ashlar::reference
