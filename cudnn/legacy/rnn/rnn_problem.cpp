#include "legacy/rnn/rnn_problem.hpp"

#include <algorithm>

#include "core/data_type.hpp"
#include "legacy/descriptor_helpers.hpp"
#include "legacy/dropout.hpp"
#include "legacy/workspace.hpp"

namespace ashlar::cudnn {

namespace {

// Elements per row and pseudo-layer that the backward passes need: docs/ops/recurrent.md.
std::int64_t record_width(const RnnAttributes& op) {
  switch (op.mode) {
    case RnnMode::lstm: return 6 * op.hidden_size + op.projection_size;
    case RnnMode::gru: return 5 * op.hidden_size;
    default: return op.hidden_size;
  }
}

// Collects the operands and results of one RNN node.
template <class Rnn>
class RnnNode {
 public:
  RnnNode(Graph& graph, const RnnProblem& problem) : graph_(graph), problem_(problem) {}

  RnnNode& input(typename Rnn::In slot, const char* name, const TensorSpec& spec,
                 bool present = true) {
    if (present) inputs_.push_back({slot, add_input(graph_, name, spec)});
    return *this;
  }
  RnnNode& output(typename Rnn::Out slot, const char* name, const TensorSpec& spec,
                  bool present = true) {
    if (!present) return *this;
    wanted_.emplace_back(slot, spec.dtype, spec.dims);
    results_.push_back({slot, name, spec});
    return *this;
  }
  // Sequence lengths and the dropout generator state.
  void apply() {
    const bool drops = problem_.has_dropout();
    input(Rnn::seq_lengths, "lengths", row_major_spec(i32, {problem_.batch}), problem_.has_lengths);
    input(Rnn::dropout_seed, "seed", row_major_spec(i64, {1}), drops);
    input(Rnn::dropout_offset, "offset", row_major_spec(i64, {1}), drops);
    Rnn op;
    static_cast<RnnAttributes&>(op) = problem_.op;
    OutputSpec main;
    main.compute = problem_.state;
    main.dtype = results_.front().spec.dtype;
    const auto values = graph_.apply(op, inputs_, wanted_, main);
    for (const Produced& produced : results_)
      add_output(graph_, produced.name, values[produced.slot], produced.spec);
  }

 private:
  struct Produced {
    typename Rnn::Out slot;
    const char* name;
    TensorSpec spec;
  };
  Graph& graph_;
  const RnnProblem& problem_;
  std::vector<Operand<Rnn>> inputs_;
  std::vector<Wanted<Rnn>> wanted_;
  std::vector<Produced> results_;
};

cudnnRNNDataStruct with_vectors(cudnnRNNDataStruct sequences, std::int64_t size) {
  sequences.vector_size = static_cast<int>(size);
  return sequences;
}

}  // namespace

RnnProblem::RnnProblem(const cudnnRNNStruct& network, const cudnnRNNDataStruct& sequences,
                       double dropout_probability, double padding_value)
    : op(attributes_of(network)),
      input_size(network.input_size),
      layout(op, input_size),
      batch(sequences.batch),
      rows(is_packed(sequences) ? row_count(sequences)
                                : std::int64_t{sequences.max_length} * sequences.batch),
      has_lengths(!has_equal_lengths(sequences)),
      allows_tf32(network.math != CUDNN_FMA_MATH),
      state(state_dtype(network)),
      x(spec_of(sequences)),
      y(spec_of(with_vectors(sequences, layout.directions() * layout.output_size()))) {
  if (sequences.type != network.dtype)
    fail(CUDNN_STATUS_BAD_PARAM, "xDesc.dataType: got {}, expected {} as rnnDesc has",
         data_type_name(sequences.type), data_type_name(network.dtype));
  if (sequences.vector_size != network.input_size)
    fail(CUDNN_STATUS_BAD_PARAM, "xDesc.vectorSize: got {}, expected inputSize = {}",
         sequences.vector_size, network.input_size);
  require_countable("reserveSpace", {static_cast<double>(layout.pseudo_layers()),
                                     static_cast<double>(rows), 8.0 * network.hidden_size});
  require_countable("xDesc", {static_cast<double>(rows), static_cast<double>(input_size)});
  op.dropout = dropout_probability;
  op.padding_value = padding_value;
  op.layout = is_packed(sequences) ? RnnLayout::packed : RnnLayout::padded;

  const std::int64_t pseudo_layers = layout.pseudo_layers();
  h = row_major_spec(x.dtype, {pseudo_layers, batch, layout.output_size()});
  c = row_major_spec(x.dtype, {pseudo_layers, batch, op.hidden_size});
  weights = row_major_spec(x.dtype, {layout.count()});
  const auto records_of = [&](std::int64_t width) {
    return row_major_spec(state, op.layout == RnnLayout::packed
                                     ? Dims{pseudo_layers, rows, width}
                                     : Dims{pseudo_layers, sequences.max_length, batch, width});
  };
  records = records_of(record_width(op));
  dgates = records_of(layout.gates() * op.hidden_size + op.projection_size);

  dgates_at = aligned_bytes(bytes_of(state, element_count(records.dims)));
  random_at = dgates_at + aligned_bytes(bytes_of(state, element_count(dgates.dims)));
  lengths_at = random_at + aligned_bytes(kDropoutStatesBytes);
  reserve_bytes = lengths_at + aligned_bytes(lengths_bytes());
}

std::int64_t RnnProblem::draws() const {
  return has_dropout() ? (op.layers - 1) * rows * layout.directions() * layout.output_size() : 0;
}

void RnnProblem::forward(Graph& graph, const RnnStates& states, bool is_training) const {
  using Rnn = RnnForward;
  RnnNode<Rnn>(graph, *this)
      .input(Rnn::x, "x", x)
      .input(Rnn::weights, "weights", weights)
      .input(Rnn::hx, "hx", states.h, states.hx)
      .input(Rnn::cx, "cx", states.c, states.cx)
      .output(Rnn::y, "y", y)
      .output(Rnn::hy, "hy", states.h, states.h_last)
      .output(Rnn::cy, "cy", states.c, states.c_last)
      .output(Rnn::reserve, "records", records, is_training)
      .apply();
}

void RnnProblem::backward_data(Graph& graph, const RnnStates& states) const {
  using Rnn = RnnBackwardData;
  RnnNode<Rnn>(graph, *this)
      .input(Rnn::dy, "dy", y)
      .input(Rnn::weights, "weights", weights)
      .input(Rnn::reserve, "records", records)
      .input(Rnn::hx, "hx", states.h, states.hx)
      .input(Rnn::cx, "cx", states.c, states.cx)
      .input(Rnn::dhy, "dhy", states.h, states.h_last)
      .input(Rnn::dcy, "dcy", states.c, states.c_last)
      .output(Rnn::dx, "dx", x)
      .output(Rnn::dhx, "dhx", states.h, states.dhx)
      .output(Rnn::dcx, "dcx", states.c, states.dcx)
      .output(Rnn::dgates, "dgates", dgates)
      .apply();
}

void RnnProblem::backward_weights(Graph& graph, const RnnStates& states, bool adds) const {
  using Rnn = RnnBackwardWeights;
  RnnNode<Rnn>(graph, *this)
      .input(Rnn::x, "x", x)
      .input(Rnn::reserve, "records", records)
      .input(Rnn::dgates, "dgates", dgates)
      .input(Rnn::hx, "hx", states.h, states.hx)
      .input(Rnn::previous, "previous", weights, adds)
      .output(Rnn::dweights, "dweights", weights)
      .apply();
}

void add_to_key(PlanKey& key, const RnnProblem& problem) {
  const auto add = [&](const char*, const auto& value) {
    if constexpr (requires { value.has_value(); })
      key.add(value.has_value()).add(value.value_or(0.0));
    else
      key.add(value);
  };
  RnnAttributes::attributes(problem.op, add);
  add_to_key(key, problem.x);
  add_to_key(key, problem.y);
  key.add(problem.batch).add(problem.has_lengths).add(problem.allows_tf32).add(problem.state);
}

void add_to_key(PlanKey& key, const RnnStates& states) {
  add_to_key(key, states.h);
  add_to_key(key, states.c);
  for (bool present : {states.hx, states.cx, states.h_last, states.c_last, states.dhx, states.dcx})
    key.add(present);
}

}  // namespace ashlar::cudnn
