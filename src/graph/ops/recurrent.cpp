// Definition of recurrent networks.
#include <cmath>

#include "graph/enum_names.hpp"
#include "graph/ops/define.hpp"
#include "graph/rnn_shapes.hpp"

namespace ashlar {

namespace {

void check_attributes(NodeContext& node, const RnnAttributes& op) {
  if (op.hidden_size < 1) node.reject("hidden_size", op.hidden_size, "at least 1");
  if (op.layers < 1) node.reject("layers", op.layers, "at least 1");
  const bool lstm = op.mode == RnnMode::lstm;
  if (op.projection_size != 0 && !lstm)
    node.reject("projection_size", op.projection_size, "0 in mode {}: only lstm projects",
                enum_name(op.mode));
  if (op.projection_size < 0 || op.projection_size > op.hidden_size)
    node.reject("projection_size", op.projection_size, "0 (none) to hidden_size = {}",
                op.hidden_size);
  for (const auto& [name, bound] :
       {std::pair("clip_low", op.clip_low), {"clip_high", op.clip_high}})
    if (bound && (!lstm || std::isnan(*bound)))
      node.reject(name, *bound, "{}", lstm ? "a number" : "none: only lstm has a cell state");
  if (op.clip_low && op.clip_high && *op.clip_low > *op.clip_high)
    node.reject("clip_low", *op.clip_low, "at most clip_high = {}", *op.clip_high);
  if (op.clip_nan && !op.clip_low) node.reject("clip_nan", true, "false without clip_low");
  if (!(op.dropout >= 0.0 && op.dropout < 1.0))
    node.reject("dropout", op.dropout, "a probability in [0, 1)");
}

template <class OpType>
void check_common(NodeContext& node, const OpType& op, int sequence) {
  check_attributes(node, op);
  const bool packed = op.layout == RnnLayout::packed;
  const int rank = node.input(sequence).dims.rank();
  if (rank != (packed ? 2 : 3))
    node.reject(fmt::format("rank of {}", node.input_name(sequence)), rank, "{}",
                packed ? "2 in the packed layout: rows, features"
                       : "3 in the padded layout: steps, batch, features");
  if (packed && !node.has_input(OpType::seq_lengths))
    node.reject("input seq_lengths", "nothing", "a tensor in the packed layout");
  if (node.has_input(OpType::seq_lengths)) node.require_rank(OpType::seq_lengths, 1, 1);
  node.require_integer(OpType::seq_lengths);
  const bool seeded = node.has_input(OpType::dropout_seed);
  if (seeded != (op.dropout > 0.0))
    node.reject("input dropout_seed", seeded ? "a tensor" : "nothing", "{}",
                seeded ? "none without dropout" : "a tensor with dropout");
  if (node.has_input(OpType::dropout_offset) && !seeded)
    node.reject("input dropout_offset", "a tensor", "none without dropout_seed");
  for (int slot : {OpType::dropout_seed, OpType::dropout_offset}) {
    node.require_one_element(slot);
    node.require_integer(slot);
  }
}

template <class OpType>
RnnShape make_shape(NodeContext& node, const OpType& op, int sequence, std::int64_t input) {
  const std::int64_t batch =
      op.layout == RnnLayout::packed ? node.input(OpType::seq_lengths).dims[0] : 0;
  const RnnShape shape(op, node.input(sequence).dims, batch, input);
  if (node.has_input(OpType::seq_lengths)) node.require_dims(OpType::seq_lengths, {shape.batch});
  return shape;
}

void require_state(NodeContext& node, int slot, const Dims& dims) {
  node.require_dims(slot, dims);
  node.require_floating(slot);
}

// Only an LSTM has a cell state.
void require_cell(NodeContext& node, RnnMode mode, int slot, const Dims& dims) {
  if (node.has_input(slot) && mode != RnnMode::lstm)
    node.reject(fmt::format("input {}", node.input_name(slot)), "a tensor", "none in mode {}",
                enum_name(mode));
  require_state(node, slot, dims);
}

void infer_output(NodeContext& node, int slot, const Dims& dims, DType dtype,
                  const Tensor& like = {}) {
  node.infer_dims(slot, dims);
  node.infer_dtype(slot, dtype);
  node.infer_strides_like(slot, like);
}

void infer_cell(NodeContext& node, RnnMode mode, int slot, const Dims& dims, DType dtype) {
  if (node.has_output(slot) && mode != RnnMode::lstm)
    node.reject(
        fmt::format("output {}", node.traits().outputs[static_cast<std::size_t>(slot)].name),
        "a tensor", "none in mode {}", enum_name(mode));
  infer_output(node, slot, dims, dtype);
}

DType record_dtype(DType dtype) { return dtype == f64 ? f64 : f32; }

// The backward passes read these records; 8-bit types would ruin the gradients.
void check_records(NodeContext& node, std::string_view what, DType dtype) {
  if (dtype != f64 && dtype != f32 && dtype != f16 && dtype != bf16)
    node.reject(fmt::format("dtype of {}", what), dtype, "f64, f32, f16 or bf16");
}

void require_records(NodeContext& node, int slot, const Dims& dims) {
  node.require_dims(slot, dims);
  check_records(node, node.input_name(slot), node.input(slot).dtype);
}

void infer_records(NodeContext& node, int slot, const Dims& dims, DType like) {
  if (!node.has_output(slot)) return;
  infer_output(node, slot, dims, record_dtype(like));
  check_records(node,
                fmt::format("{} '{}'", node.traits().outputs[static_cast<std::size_t>(slot)].name,
                            node.output(slot).name),
                node.output(slot).dtype);
}

// For the operations that read x: checks x and everything common to the three operations.
template <class Rnn>
RnnShape shape_from_x(NodeContext& node, const Rnn& op) {
  check_common(node, op, Rnn::x);
  node.require_floating(Rnn::x);
  const Dims& x = node.input(Rnn::x).dims;
  const std::int64_t input = x[x.rank() - 1];
  if (op.input == RnnInput::skip && input != op.hidden_size)
    node.reject("features of x", input, "hidden_size = {}, because input is skip", op.hidden_size);
  return make_shape(node, op, Rnn::x, input);
}

void infer_rnn_forward(NodeContext& node) {
  using Rnn = RnnForward;
  const auto& op = node.op<Rnn>();
  const RnnShape shape = shape_from_x(node, op);
  const Tensor& x = node.input(Rnn::x);
  node.require_dims(Rnn::weights, {shape.weight_count()});
  node.require_floating(Rnn::weights);
  require_state(node, Rnn::hx, shape.state(shape.output()));
  require_cell(node, op.mode, Rnn::cx, shape.state(shape.hidden));
  infer_output(node, Rnn::y, shape.sequence(shape.layer_output()), x.dtype, x);
  infer_output(node, Rnn::hy, shape.state(shape.output()), x.dtype);
  infer_cell(node, op.mode, Rnn::cy, shape.state(shape.hidden), x.dtype);
  infer_records(node, Rnn::reserve, shape.records(shape.reserve_width()), x.dtype);
}

void infer_rnn_backward_data(NodeContext& node) {
  using Rnn = RnnBackwardData;
  const auto& op = node.op<Rnn>();
  check_common(node, op, Rnn::dy);
  node.require_floating(Rnn::dy);
  node.require_rank(Rnn::weights, 1, 1);
  node.require_floating(Rnn::weights);
  const Tensor& dy = node.input(Rnn::dy);
  const std::int64_t count = node.input(Rnn::weights).dims[0];
  const std::int64_t input = rnn_input_size(op, count);
  const RnnShape shape = make_shape(node, op, Rnn::dy, std::max<std::int64_t>(input, 0));
  if (input < 0 || shape.weight_count() != count)
    node.reject(
        fmt::format("dims of {}", node.input_name(Rnn::weights)), count,
        "{} weights plus {} for each feature of x",
        RnnShape(op, dy.dims, 0, op.input == RnnInput::skip ? op.hidden_size : 0).weight_count(),
        op.input == RnnInput::skip ? 0 : shape.directions * shape.gate_rows());
  node.require_dims(Rnn::dy, shape.sequence(shape.layer_output()));
  require_records(node, Rnn::reserve, shape.records(shape.reserve_width()));
  for (int slot : {Rnn::hx, Rnn::dhy}) require_state(node, slot, shape.state(shape.output()));
  for (int slot : {Rnn::cx, Rnn::dcy}) require_cell(node, op.mode, slot, shape.state(shape.hidden));
  infer_output(node, Rnn::dx, shape.sequence(shape.input), dy.dtype, dy);
  infer_output(node, Rnn::dhx, shape.state(shape.output()), dy.dtype);
  infer_cell(node, op.mode, Rnn::dcx, shape.state(shape.hidden), dy.dtype);
  infer_records(node, Rnn::dgates, shape.records(shape.dgates_width()), dy.dtype);
}

void infer_rnn_backward_weights(NodeContext& node) {
  using Rnn = RnnBackwardWeights;
  const auto& op = node.op<Rnn>();
  const RnnShape shape = shape_from_x(node, op);
  const Tensor& x = node.input(Rnn::x);
  require_records(node, Rnn::reserve, shape.records(shape.reserve_width()));
  require_records(node, Rnn::dgates, shape.records(shape.dgates_width()));
  require_state(node, Rnn::hx, shape.state(shape.output()));
  const Dims weights{shape.weight_count()};
  require_state(node, Rnn::previous, weights);
  infer_output(
      node, Rnn::dweights, weights,
      node.has_input(Rnn::previous) ? node.input(Rnn::previous).dtype : record_dtype(x.dtype));
}

// Plausible results of a forward pass: activated gates are in (0, 1) or (-1, 1), states in (-1, 1).
Contents reserve_contents(const RnnShape& shape) {
  const auto element = [=](std::int64_t position, double random) {
    const std::int64_t gate = position % shape.reserve_width() / shape.hidden;
    const bool in_unit_interval = (shape.mode == RnnMode::lstm && (gate < 2 || gate == 3)) ||
                                  (shape.mode == RnnMode::gru && gate < 2);
    if (in_unit_interval) return 0.05 + 0.9 * random;
    return shape.mode == RnnMode::relu ? std::max(0.0, 2 * random - 1) : 2 * random - 1;
  };
  return {.kind = Contents::Kind::by_element, .below = 0, .above = 0, .element = element};
}

template <class Rnn>
Contents rnn_contents(const NodeShapes& node, int slot) {
  const auto& op = node.op<Rnn>();
  const Dims& sequence = node.input(0);  // x or dy
  if constexpr (!std::is_same_v<Rnn, RnnForward>)
    if (slot == Rnn::reserve)
      return reserve_contents({op, sequence.rank() == 3 ? sequence : Dims{0, 0}, 0, 0});
  switch (slot) {
    case Rnn::dropout_seed:
    case Rnn::dropout_offset: return seeds();
    case Rnn::seq_lengths: {
      // Packed rows are shared by the sequences.
      const std::int64_t sequences = std::max<std::int64_t>(node.input(slot)[0], 1);
      const bool packed = op.layout == RnnLayout::packed;
      return lengths_up_to(packed ? sequence[0] / sequences : sequence[0], -2, packed ? 5 : 3);
    }
    default: return {};
  }
}

template <class Rnn>
double rnn_flops(const NodeShapes& node) {
  const auto& op = node.op<Rnn>();
  const Dims& sequence = node.input(0);  // x or dy: they have the same rows
  std::int64_t features = sequence[sequence.rank() - 1];
  if constexpr (std::is_same_v<Rnn, RnnBackwardData>)
    features = rnn_input_size(op, node.input(Rnn::weights)[0]);
  return RnnShape(op, sequence, 0, features).flops();
}

// One layer of tanh cells, 8 wide: two matrices of 8 x 8 and two biases of 8.
template <class Op>
Op recurrent_op() {
  Op op;
  op.mode = RnnMode::tanh;
  op.hidden_size = 8;
  return op;
}
constexpr std::int64_t kRecurrentWeights = 2 * 8 * 8 + 2 * 8;

std::vector<Value> sample_rnn_forward(Graph& g, DType t) {
  using Op = RnnForward;
  return g
      .apply(recurrent_op<Op>(),
             {{Op::x, g.input("x", {4, 2, 8}, t)},
              {Op::weights, g.input("weights", {kRecurrentWeights}, t)}},
             {Op::y})
      .all();
}
// The backward operations read what the forward pass computes.
std::vector<Value> sample_rnn_backward_data(Graph& g, DType t) {
  using Op = RnnBackwardData;
  const Value weights = g.input("weights", {kRecurrentWeights}, t);
  const Value reserve =
      g.apply(recurrent_op<RnnForward>(),
              {{RnnForward::x, g.input("x", {4, 2, 8}, t)}, {RnnForward::weights, weights}},
              {RnnForward::y, RnnForward::reserve})[RnnForward::reserve];
  return g
      .apply(
          recurrent_op<Op>(),
          {{Op::dy, g.input("dy", {4, 2, 8}, t)}, {Op::weights, weights}, {Op::reserve, reserve}},
          {Op::dx, Op::dgates}, {.dims = {4, 2, 8}})
      .all();
}
std::vector<Value> sample_rnn_backward_weights(Graph& g, DType t) {
  using Op = RnnBackwardWeights;
  const Value dgates = sample_rnn_backward_data(g, t)[RnnBackwardData::dgates];
  const Value reserve = g.value(g.nodes()[0].outputs[RnnForward::reserve]);
  return g
      .apply(recurrent_op<Op>(),
             {{Op::x, g.value(g.find_tensor("x"))}, {Op::reserve, reserve}, {Op::dgates, dgates}},
             {Op::dweights}, {.dims = {kRecurrentWeights}})
      .all();
}

void rnn_gradient(GradientContext& c) {
  using Self = RnnForward;
  using Data = RnnBackwardData;
  using Weights = RnnBackwardWeights;
  Value dy = c.dy(Self::y);
  if (!dy) dy = c.expand(c.constant(0.0, c.output(Self::y).dims().rank()), c.output(Self::y));
  const Value reserve = c.require_output(Self::reserve);
  Data data;
  static_cast<RnnAttributes&>(data) = c.op<Self>();
  std::vector<AnyOperand> operands = c.shared_operands(data);
  operands.push_back({Data::dy, dy});
  operands.push_back({Data::reserve, reserve});
  if (const Value dhy = c.dy(Self::hy)) operands.push_back({Data::dhy, dhy});
  if (const Value dcy = c.dy(Self::cy)) operands.push_back({Data::dcy, dcy});
  std::vector<AnyWanted> wanted;
  if (c.wants(Self::hx)) wanted.push_back({Data::dhx});
  if (c.wants(Self::cx)) wanted.push_back({Data::dcx});
  if (c.wants(Self::weights)) wanted.push_back({Data::dgates});
  const auto out = c.graph().apply_any(data, operands, wanted);
  c.add(Self::x, out[Data::dx]);
  if (c.wants(Self::hx)) c.add(Self::hx, out[Data::dhx]);
  if (c.wants(Self::cx)) c.add(Self::cx, out[Data::dcx]);
  if (!c.wants(Self::weights)) return;
  Weights weights;
  static_cast<RnnAttributes&>(weights) = c.op<Self>();
  operands = c.shared_operands(weights);
  operands.push_back({Weights::reserve, reserve});
  operands.push_back({Weights::dgates, out[Data::dgates]});
  c.add(Self::weights, c.graph().apply_any(weights, operands, {})[Weights::dweights]);
}

}  // namespace

template <>
OpTraits define_traits<RnnForward>() {
  return {.name = "rnn_forward",
          .doc_page = "recurrent",
          .infer = infer_rnn_forward,
          .gradient = rnn_gradient,
          .sample = sample_rnn_forward,
          .contents = rnn_contents<RnnForward>,
          .flops = rnn_flops<RnnForward>,
          .is_compute_bound = true};
}

template <>
OpTraits define_traits<RnnBackwardData>() {
  return {.name = "rnn_backward_data",
          .doc_page = "recurrent",
          .infer = infer_rnn_backward_data,
          .sample = sample_rnn_backward_data,
          .contents = rnn_contents<RnnBackwardData>,
          .flops = rnn_flops<RnnBackwardData>,
          .is_compute_bound = true};
}

template <>
OpTraits define_traits<RnnBackwardWeights>() {
  return {.name = "rnn_backward_weights",
          .doc_page = "recurrent",
          .infer = infer_rnn_backward_weights,
          .sample = sample_rnn_backward_weights,
          .contents = rnn_contents<RnnBackwardWeights>,
          .flops = rnn_flops<RnnBackwardWeights>,
          .is_compute_bound = true};
}

}  // namespace ashlar
