// Recurrent networks and CTC: one CTA per sequence, sequential over steps.
#include "base/element.hpp"
#include "cuda/engines/generic/operations.hpp"
#include "graph/rnn_shapes.hpp"

namespace ashlar::cuda {

namespace {

template <class Rnn>
RnnShape add_rnn(const Rnn& op, GenericKernel& kernel) {
  const Dims& sequence = kernel.in(0).dims;  // x or dy
  std::int64_t batch = 0, input = sequence[sequence.rank() - 1];
  if (op.layout == RnnLayout::packed) batch = kernel.in(Rnn::seq_lengths).dims[0];
  if constexpr (std::is_same_v<Rnn, RnnBackwardData>)
    input = rnn_input_size(op, kernel.in(Rnn::weights).dims[0]);
  const RnnShape shape(op, sequence, batch, input);

  kernel.file("recurrent");
  kernel.constant("kModeRelu", static_cast<int>(RnnMode::relu));
  kernel.constant("kModeTanh", static_cast<int>(RnnMode::tanh));
  kernel.constant("kModeLstm", static_cast<int>(RnnMode::lstm));
  kernel.constant("kModeGru", static_cast<int>(RnnMode::gru));
  kernel.constant("kMode", static_cast<int>(op.mode));
  kernel.constant("kPacked", shape.packed);
  kernel.constant("kSkip", shape.skip);
  kernel.constant("kProjects", shape.projection > 0);
  kernel.constant("kInputBias", shape.has_input_bias());
  kernel.constant("kRecurrentBias", shape.has_recurrent_bias());
  kernel.constant("kDropout", op.dropout > 0.0);
  kernel.constant("kHasClipLow", op.clip_low.has_value());
  kernel.constant("kHasClipHigh", op.clip_high.has_value());
  kernel.constant("kClipNan", op.clip_nan);
  kernel.number("layers", shape.layers);
  kernel.number("directions", shape.directions);
  kernel.number("batch", shape.batch);
  kernel.number("steps", shape.steps);
  kernel.number("rows", shape.rows);
  kernel.number("input", shape.input);
  kernel.number("hidden", shape.hidden);
  kernel.number("output", shape.output());
  kernel.number("layer_output", shape.layer_output());
  kernel.number("gate_rows", shape.gate_rows());
  kernel.number("cell", shape.cell());
  kernel.number("recurrent_new", shape.recurrent_new());
  kernel.number("hidden_state", shape.hidden_state());
  kernel.number("output_state", shape.output_state());
  kernel.number("reserve_width", shape.reserve_width());
  kernel.number("dgates_width", shape.dgates_width());
  kernel.real("keep_probability", 1.0 - op.dropout);
  const auto matrices = [&](const std::string& name, std::int64_t layer) {
    const RnnWeights at = shape.weights(layer, 0);
    const std::int64_t start = at.input.offset;
    kernel.numbers(name, {0, at.recurrent.offset - start, at.projection.offset - start,
                          shape.matrix_count(layer)});
  };
  matrices("first_layer", 0);
  matrices("other_layers", 1);
  kernel.number("biases", shape.matrices_before(shape.pseudo_layers()));
  kernel.number("bias_count", shape.bias_count());
  kernel.scratch("lengths", shape.batch * 8);
  kernel.scratch("starts", (shape.steps + 1) * 8);
  kernel.block_pass(1);
  return shape;
}

}  // namespace

void describe(const RnnForward& op, GenericKernel& kernel) {
  const RnnShape shape = add_rnn(op, kernel);
  kernel.file("rnn_forward");
  kernel.real("clip_low", op.clip_low.value_or(0.0));
  kernel.real("clip_high", op.clip_high.value_or(0.0));
  kernel.real("padding_value", op.padding_value);
  const std::int64_t sequences = shape.directions * shape.batch;
  const std::int64_t number = kernel.register_bytes();
  kernel.scratch("outputs", checked_mul(2 * shape.rows, shape.layer_output()) * number);
  kernel.scratch(
      "records",
      checked_mul(sequences, shape.reserve_width() + shape.output() + shape.hidden) * number);
  for (std::int64_t layer = 0; layer < shape.layers; ++layer) kernel.block_pass(sequences);
  kernel.block_pass(shape.rows);
}

void describe(const RnnBackwardData& op, GenericKernel& kernel) {
  const RnnShape shape = add_rnn(op, kernel);
  kernel.file("rnn_backward_data");
  // Bounds rounded to the type of the records that hold the clipped state.
  const DType records = kernel.in(RnnBackwardData::reserve).dtype;
  kernel.real("clip_low", round_to(records, op.clip_low.value_or(0.0)));
  kernel.real("clip_high", round_to(records, op.clip_high.value_or(0.0)));
  const std::int64_t sequences = shape.directions * shape.batch;
  const std::int64_t number = kernel.register_bytes();
  kernel.scratch("d_outputs", checked_mul(shape.rows, shape.layer_output()) * number);
  kernel.scratch("gates",
                 checked_mul(shape.directions * shape.rows, shape.dgates_width()) * number);
  kernel.scratch("states", checked_mul(sequences, shape.output() + 2 * shape.hidden) * number);
  for (std::int64_t layer = 0; layer < shape.layers; ++layer) {
    kernel.block_pass(sequences);
    kernel.block_pass(shape.rows);
  }
  kernel.block_pass(shape.rows);
}

void describe(const RnnBackwardWeights& op, GenericKernel& kernel) {
  const RnnShape shape = add_rnn(op, kernel);
  kernel.file("rnn_backward_weights");
  kernel.pass(shape.weight_count());
}

void describe(const CtcLoss& op, GenericKernel& kernel) {
  const Dims& x = kernel.in(CtcLoss::x).dims;
  const Dims& labels = kernel.in(CtcLoss::labels).dims;
  kernel.file("ctc_loss");
  kernel.constant("kLogits", op.input == CtcInput::logits);
  kernel.constant("kZeroInfinity", op.zero_infinity);
  kernel.number("blank", op.blank);
  // Two values per time step, and two per time step and state of every sequence.
  const std::int64_t states =
      labels.rank() == 1 ? 2 * labels[0] + x[1] : x[1] * (2 * labels[1] + 1);
  const std::int64_t number = kernel.register_bytes();
  kernel.scratch("softmax", checked_mul(2 * x[0], x[1]) * number);
  kernel.scratch("paths", checked_mul(2 * x[0], states) * number);
  kernel.block_pass(x[1]);
}

}  // namespace ashlar::cuda
