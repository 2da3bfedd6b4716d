#include "legacy/multi_head_attention/attn_problem.hpp"

#include <algorithm>

#include "core/data_type.hpp"
#include "core/failure.hpp"
#include "legacy/descriptor_helpers.hpp"

namespace ashlar::cudnn {

namespace {

constexpr int kSteps = 2;  // axis of [batch, beams, steps, vector]

struct Expected {
  const char* name;
  int got;
  std::int64_t expected;
};

void require_extents(const char* parameter, std::initializer_list<Expected> extents) {
  for (const Expected& extent : extents)
    if (extent.got != extent.expected)
      fail(CUDNN_STATUS_BAD_PARAM, "{}.{}: got {}, expected {}", parameter, extent.name, extent.got,
           extent.expected);
}

void require_at_most(const char* parameter, const char* name, int got, int maximum) {
  if (got > maximum)
    fail(CUDNN_STATUS_BAD_PARAM, "{}.{}: got {}, expected at most {} as attnDesc says", parameter,
         name, got, maximum);
}

void check(const cudnnAttnStruct& attention, const cudnnSeqDataStruct& q,
           const cudnnSeqDataStruct& k, const cudnnSeqDataStruct& v, const cudnnSeqDataStruct& o) {
  const int key_beams = has_key_beams(attention) ? q.beams() : 1;
  require_extents("qDesc", {{"vector", q.vector_size(), attention.q_size}});
  require_extents("kDesc", {{"vector", k.vector_size(), attention.k_size},
                            {"batch", k.batch(), q.batch()},
                            {"beam", k.beams(), key_beams}});
  require_extents("vDesc", {{"vector", v.vector_size(), attention.v_size},
                            {"batch", v.batch(), q.batch()},
                            {"beam", v.beams(), key_beams},
                            {"time", v.steps(), k.steps()}});
  require_extents("oDesc", {{"vector", o.vector_size(), output_size(attention)},
                            {"batch", o.batch(), q.batch()},
                            {"beam", o.beams(), q.beams()},
                            {"time", o.steps(), q.steps()}});
  require_at_most("qDesc", "time", q.steps(), attention.max_q_length);
  require_at_most("kDesc", "time", k.steps(), attention.max_kv_length);
  require_at_most("qDesc", "batch", q.batch(), attention.max_batch);
  require_at_most("qDesc", "beam", q.beams(), attention.max_beam);
  for (const cudnnSeqDataStruct* data : {&q, &k, &v, &o})
    if (data->type != attention.dtype)
      fail(CUDNN_STATUS_BAD_PARAM, "dataType: got {}, expected {} as attnDesc has",
           data_type_name(data->type), data_type_name(attention.dtype));
  if (v.lengths != k.lengths || o.lengths != q.lengths)
    fail(CUDNN_STATUS_BAD_PARAM,
         "seqLengthArray: got different lengths for values and keys, or for results and "
         "queries");
}

bool is_shorter(const cudnnSeqDataStruct& data) {
  return std::any_of(data.lengths.begin(), data.lengths.end(),
                     [&](int length) { return length < data.steps(); });
}

// The inputs that all three passes read.
template <class Op>
std::vector<Operand<Op>> operands(Graph& graph, const AttnProblem& problem) {
  std::vector<Operand<Op>> inputs;
  const auto add = [&](typename Op::In slot, const char* name, const TensorSpec& spec,
                       bool present) {
    if (present) inputs.push_back({slot, add_input(graph, name, spec)});
  };
  const TensorSpec one = row_major_spec(i64, {1}),
                   window = row_major_spec(i32, {1, 1, problem.q.dims[kSteps], 1});
  const auto lengths = [](const TensorSpec& of) {
    return row_major_spec(i32, {of.dims[0], of.dims[1], 1, 1});
  };
  add(Op::q, "q", problem.q, true);
  add(Op::k, "k", problem.k, true);
  add(Op::v, "v", problem.v, true);
  if (problem.has_weights())
    inputs.push_back({Op::weights, problem.layout.row_major(
                                       graph, add_input(graph, "weights", problem.weights))});
  add(Op::seq_len_q, "q_lengths", lengths(problem.q), problem.has_q_lengths);
  add(Op::seq_len_kv, "kv_lengths", lengths(problem.k), problem.has_kv_lengths);
  add(Op::window_low, "window_low", window, problem.has_windows);
  add(Op::window_high, "window_high", window, problem.has_windows);
  add(Op::dropout_seed, "seed", one, problem.op.attention_dropout > 0.0);
  add(Op::dropout_offset, "offset", one, problem.op.attention_dropout > 0.0);
  add(Op::post_dropout_seed, "post_seed", one, problem.op.post_dropout > 0.0);
  add(Op::post_dropout_offset, "post_offset", one, problem.op.post_dropout > 0.0);
  return inputs;
}

template <class Op>
Op operation(const AttnProblem& problem) {
  Op op;
  static_cast<MultiHeadAttentionAttributes&>(op) = problem.op;
  return op;
}

OutputSpec computed_in(DType compute) {
  OutputSpec result;
  result.compute = compute;
  return result;
}

// o inside its sequences, and paddingFill past their ends.
Value padded(Graph& graph, const AttnProblem& problem, Value o, Value lengths) {
  Pointwise along_steps;
  along_steps.axis = kSteps;
  OutputSpec index;
  index.dtype = index.compute = i32;
  const Value step = graph.pointwise(PointwiseMode::gen_index, std::array{o}, along_steps, index);
  const Value is_step = pointwise(PointwiseMode::cmp_lt, step, lengths);
  return select(is_step, o, graph.constant(problem.padding_value, problem.compute));
}

}  // namespace

AttnProblem::AttnProblem(const cudnnAttnStruct& attention, const cudnnSeqDataStruct& q_data,
                         const cudnnSeqDataStruct& k_data, const cudnnSeqDataStruct& v_data,
                         const cudnnSeqDataStruct& o_data, double attention_dropout,
                         double output_dropout)
    : op(attributes_of(attention)),
      layout(attention),
      q(spec_of(q_data)),
      k(spec_of(k_data)),
      v(spec_of(v_data)),
      o(spec_of(o_data)),
      weights(row_major_spec(q.dtype, {layout.count()})),
      compute(q.dtype == f64 || attention.compute == CUDNN_DATA_DOUBLE ? f64 : f32),
      allows_tf32(attention.math != CUDNN_FMA_MATH),
      has_q_lengths(is_shorter(q_data)),
      has_kv_lengths(is_shorter(k_data)) {
  check(attention, q_data, k_data, v_data, o_data);
  op.attention_dropout = attention_dropout;
  op.post_dropout = output_dropout;
}

std::int64_t AttnProblem::attention_draws() const {
  return element_count({q.dims[0], op.heads, q.dims[1], q.dims[kSteps], k.dims[kSteps]});
}

void AttnProblem::select_step(std::span<const int> q_lengths, int step) {
  q.dims[kSteps] = o.dims[kSteps] = 1;
  has_q_lengths =
      std::any_of(q_lengths.begin(), q_lengths.end(), [&](int length) { return length <= step; });
}

void AttnProblem::forward(Graph& graph) const {
  using Op = MultiHeadAttentionForward;
  std::vector<Operand<Op>> inputs = operands<Op>(graph, *this);
  if (has_residual) inputs.push_back({Op::residual, add_input(graph, "residual", q)});
  Value result = graph.apply(operation<Op>(*this), inputs, {Op::o}, computed_in(compute))[Op::o];
  if (has_q_lengths && padding_value != 0.0)
    result = padded(graph, *this, result, graph.value(graph.find_tensor("q_lengths")));
  add_output(graph, "o", result, o);
}

void AttnProblem::backward_data(Graph& graph) const {
  using Op = MultiHeadAttentionBackwardData;
  std::vector<Operand<Op>> inputs = operands<Op>(graph, *this);
  inputs.push_back({Op::d_o, add_input(graph, "d_o", o)});
  const auto gradients =
      graph.apply(operation<Op>(*this), inputs, {Op::dq, Op::dk, Op::dv}, computed_in(compute));
  add_output(graph, "dq", gradients[Op::dq], q);
  add_output(graph, "dk", gradients[Op::dk], k);
  add_output(graph, "dv", gradients[Op::dv], v);
}

void AttnProblem::backward_weights(Graph& graph, bool adds) const {
  using Op = MultiHeadAttentionBackwardWeights;
  std::vector<Operand<Op>> inputs = operands<Op>(graph, *this);
  inputs.push_back({Op::d_o, add_input(graph, "d_o", o)});
  if (adds)
    inputs.push_back(
        {Op::previous, layout.row_major(graph, add_input(graph, "previous", weights))});
  const auto gradient =
      graph.apply(operation<Op>(*this), inputs, {Op::dweights}, computed_in(compute));
  add_output(graph, "dweights", layout.column_major(graph, gradient[Op::dweights]), weights);
}

void add_to_key(PlanKey& key, const AttnProblem& problem) {
  MultiHeadAttentionAttributes::attributes(problem.op,
                                           [&](const char*, const auto& value) { key.add(value); });
  for (const TensorSpec& spec : {problem.q, problem.k, problem.v, problem.o}) add_to_key(key, spec);
  key.add(problem.compute).add(problem.allows_tf32).add(problem.has_windows);
  key.add(problem.has_q_lengths).add(problem.has_kv_lengths).add(problem.has_residual);
  key.add(problem.padding_value);
}

}  // namespace ashlar::cudnn
