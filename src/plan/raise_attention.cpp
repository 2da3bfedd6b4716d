// Raises matmul, scale, soft cap, bias, masks or other pointwise operations on the scores, softmax,
// dropout, matmul to attention_forward.
#include <fmt/format.h>

#include <map>
#include <optional>
#include <set>

#include "plan/lowered.hpp"
#include "plan/raise_match.hpp"
#include "plan/score_match.hpp"

namespace ashlar {

namespace {

struct AttentionMatch {
  ScoreMatch scores;
  TensorId v = kNoTensor, seed = kNoTensor, offset = kNoTensor, mask = kNoTensor, sink = kNoTensor;
  TensorId stats = kNoTensor, max = kNoTensor, sum_exp = kNoTensor, rng_dump = kNoTensor;
  double dropout = 0.0;
  std::vector<NodeId> nodes;  // nodes to remove, besides those of the scores

  // Whether the match has more than a softmax: only attention over four axes supports that.
  bool has_options() const {
    return dropout > 0 || sink != kNoTensor || max != kNoTensor || sum_exp != kNoTensor ||
           scores.bias != kNoTensor || !scores.modifier.empty();
  }
};

// Matches, from `weights` backwards, [mul 1/(1-p)] and [mul rng mask or given mask], in either
// order, to the softmax. Returns the softmax's result (`weights` itself without dropout), or
// kNoTensor.
TensorId match_dropout(const GraphEditor& editor, TensorId weights, AttentionMatch& m) {
  const Node* outer = plain(editor, weights, PointwiseMode::mul);
  if (!outer) return weights;
  const auto is_factor = [&](TensorId t) { return constant_value(editor, t).has_value(); };
  const auto is_mask = [&](TensorId t) {
    return editor.produced_by<Rng>(t) || (!editor.producer(t) && editor.tensor(t).dtype == boolean);
  };
  const bool scaled_last = split_operands(*outer, is_factor).has_value();
  const auto first =
      scaled_last ? split_operands(*outer, is_factor) : split_operands(*outer, is_mask);
  if (!first || editor.uses(weights) != 1 || editor.uses(first->second) != 1) return kNoTensor;
  const Node* inner = plain(editor, first->second, PointwiseMode::mul);
  if (!inner) return kNoTensor;
  const auto second =
      scaled_last ? split_operands(*inner, is_mask) : split_operands(*inner, is_factor);
  if (!second) return kNoTensor;
  const double factor = *constant_value(editor, scaled_last ? first->first : second->first);
  const TensorId mask = scaled_last ? second->first : first->first;
  if (editor.tensor(mask).dims != editor.tensor(weights).dims) return kNoTensor;
  double keep = 1 / factor;
  if (const Node* rng = editor.produced_by<Rng>(mask)) {
    const auto& op = std::get<Rng>(rng->op);
    // Attention reads its seed from a tensor only.
    if (op.distribution != RngDistribution::bernoulli || op.offset != 0 ||
        rng->inputs[Rng::seed_tensor] == kNoTensor || std::fabs(factor * op.probability - 1) > 1e-6)
      return kNoTensor;
    keep = op.probability;
    m.seed = rng->inputs[Rng::seed_tensor];
    m.offset = rng->inputs[Rng::offset_tensor];
    if (editor.uses(mask) != 1) m.rng_dump = mask;
    m.nodes.push_back(editor.producer_id(mask));
  } else {
    m.mask = mask;
  }
  if (!(keep > 0 && keep < 1)) return kNoTensor;
  m.dropout = 1 - keep;
  for (TensorId id : {weights, first->second}) m.nodes.push_back(editor.producer_id(id));
  return second->second;
}

// Whether `id` is a reduction of `x` along its last axis.
bool reduces_rows(const GraphEditor& editor, TensorId id, ReductionMode mode, TensorId x) {
  const auto match = match_reduction(editor, id, mode);
  return match && match->source == x && match->axes == Dims{editor.tensor(x).dims.rank() - 1};
}

// Matches mode(reduced, sink) or reduced alone; returns {reduced, sink}.
std::pair<TensorId, TensorId> without_sink(const GraphEditor& editor, TensorId id,
                                           PointwiseMode mode, ReductionMode reduction) {
  const Node* node = plain(editor, id, mode);
  if (!node) return {id, kNoTensor};
  const auto operands = split_operands(*node, [&](TensorId t) {
    const Node* inner = editor.produced_by<Reduction>(t);
    return inner && std::get<Reduction>(inner->op).mode == reduction;
  });
  if (!operands) return {kNoTensor, kNoTensor};
  return *operands;
}

// The node that computes max + log(sum_exp), if any.
NodeId find_stats(const GraphEditor& editor, TensorId max, TensorId sum) {
  for (NodeId log_id : editor.consumers(sum)) {
    const TensorId log = editor.node(log_id).outputs[0];
    if (!plain(editor, log, PointwiseMode::log) || editor.uses(log) != 1) continue;
    for (NodeId add_id : editor.consumers(log)) {
      const Node& add = editor.node(add_id);
      if (plain(editor, add.outputs[0], PointwiseMode::add) &&
          (add.inputs[0] == max || add.inputs[1] == max))
        return add_id;
    }
  }
  return kNoNode;
}

// Matches exp(x - max) / sum where max and sum are also read elsewhere or include a sink, which
// raise_softmax does not match. Returns x, or kNoTensor.
TensorId match_open_softmax(const GraphEditor& editor, TensorId result, AttentionMatch& m) {
  const Node* division = plain(editor, result, PointwiseMode::div);
  if (!division) return kNoTensor;
  const TensorId exponential = division->inputs[0], sum = division->inputs[1];
  const Node* power = plain(editor, exponential, PointwiseMode::exp);
  if (!power || editor.uses(exponential) != 2) return kNoTensor;
  const TensorId difference = power->inputs[0];
  const Node* subtraction = plain(editor, difference, PointwiseMode::sub);
  if (!subtraction || editor.uses(difference) != 1) return kNoTensor;
  const TensorId x = subtraction->inputs[0], max = subtraction->inputs[1];
  m.nodes.insert(m.nodes.end(), {editor.producer_id(result), editor.producer_id(exponential),
                                 editor.producer_id(difference)});
  const auto [row_max, sink] = without_sink(editor, max, PointwiseMode::max, ReductionMode::max);
  const auto [row_sum, sink_weight] =
      without_sink(editor, sum, PointwiseMode::add, ReductionMode::add);
  if (row_max == kNoTensor || row_sum == kNoTensor ||
      !reduces_rows(editor, row_max, ReductionMode::max, x) ||
      !reduces_rows(editor, row_sum, ReductionMode::add, exponential))
    return kNoTensor;
  int readers_of_max = 1;
  if (sink != kNoTensor) {
    // The other term of the sum is exp(sink - max).
    const Node* weight = plain(editor, sink_weight, PointwiseMode::exp);
    const Node* shifted = weight ? plain(editor, weight->inputs[0], PointwiseMode::sub) : nullptr;
    if (!shifted || shifted->inputs[0] != sink || shifted->inputs[1] != max) return kNoTensor;
    for (TensorId inner : {row_max, row_sum, sink_weight, weight->inputs[0]}) {
      if (editor.uses(inner) != 1) return kNoTensor;
      m.nodes.push_back(editor.producer_id(inner));
    }
    ++readers_of_max;
  } else if (sink_weight != kNoTensor) {
    return kNoTensor;
  }
  for (TensorId inner : {max, sum}) m.nodes.push_back(editor.producer_id(inner));
  m.sink = sink;
  int readers_of_sum = 1;
  if (const NodeId stats = find_stats(editor, max, sum); stats != kNoNode) {
    const Node& add = editor.node(stats);
    m.stats = add.outputs[0];
    m.nodes.push_back(stats);
    m.nodes.push_back(editor.producer_id(add.inputs[add.inputs[0] == max ? 1 : 0]));
    ++readers_of_max;
    ++readers_of_sum;
  }
  if (editor.uses(max) != readers_of_max) m.max = max;
  if (editor.uses(sum) != readers_of_sum) m.sum_exp = sum;
  return x;
}

// The input of the softmax that computes `result`, and its number of reads; kNoTensor if none.
std::pair<TensorId, int> match_softmax(const GraphEditor& editor, TensorId result,
                                       AttentionMatch& m) {
  if (result == kNoTensor || editor.uses(result) != 1) return {kNoTensor, 0};
  const Node* softmax = editor.produced_by<SoftmaxForward>(result);
  if (!softmax) return {match_open_softmax(editor, result, m), 2};
  const auto& attributes = std::get<SoftmaxForward>(softmax->op);
  if (attributes.log || attributes.axis != editor.tensor(result).dims.rank() - 1)
    return {kNoTensor, 0};
  m.nodes.push_back(editor.producer_id(result));
  m.stats = softmax->outputs[SoftmaxForward::stats];
  return {softmax->inputs[0], 1};
}

// Whether the extent overrides of a matmul are absent or equal to the sequence lengths of the mask.
bool overrides_agree(const Node& product, int row_slot, int other_slot, int forbidden_slot,
                     const MaskBounds& mask) {
  const auto at = [&](int slot) { return product.inputs[static_cast<std::size_t>(slot)]; };
  const auto agrees = [](TensorId override_tensor, TensorId length) {
    return override_tensor == kNoTensor || override_tensor == length;
  };
  return agrees(at(row_slot), mask.seq_len_q) && agrees(at(other_slot), mask.seq_len_kv) &&
         at(forbidden_slot) == kNoTensor;
}

// Converts the bounds of the mask to those of attention, with the alignment that gives them a valid
// sign.
bool set_bounds(AttentionForward& op, MaskBounds mask, std::int64_t rows, std::int64_t columns) {
  const auto fits = [&] {
    return mask.left_bound.value_or(1) >= 1 && mask.right_bound.value_or(0) >= 0;
  };
  if (!fits() && !mask.bottom_right && mask.seq_len_q == kNoTensor &&
      mask.seq_len_kv == kNoTensor) {
    mask.bottom_right = true;
    if (mask.right_bound) *mask.right_bound -= columns - rows;
    if (mask.left_bound) *mask.left_bound += columns - rows;
  }
  if (!fits()) return false;
  op.left_bound = mask.left_bound;
  op.right_bound = mask.right_bound;
  if (mask.bottom_right) op.alignment = MaskAlignment::bottom_right;
  return true;
}

// The dims of an operand as [B, H, rows, columns]. Rank 3 has one head; rank 5 has heads split into
// two axes, of which a key or value may have extent 1 in the second (GQA).
std::optional<Dims> four_axes(const Dims& dims, const Dims& q) {
  switch (dims.rank()) {
    case 3: return Dims{dims[0], 1, dims[1], dims[2]};
    case 4: return dims;
    case 5:
      if (dims[1] != q[1] || (dims[2] != 1 && dims[2] != q[2])) return std::nullopt;
      return Dims{dims[0], dims[1] * dims[2], dims[3], dims[4]};
    default: return std::nullopt;
  }
}

// If the heads of keys or values are repeated (reshape, concat with itself, reshape), the tensor
// before the repetition; else `id`.
TensorId without_repeats(const GraphEditor& editor, TensorId id) {
  const Node* merged = editor.produced_by<Reshape>(id);
  const Node* joined = merged ? editor.produced_by<Concat>(merged->inputs[0]) : nullptr;
  if (!joined || std::get<Concat>(joined->op).axis != 2) return id;
  const TensorId part = joined->inputs[0];
  for (TensorId input : joined->inputs)
    if (input != part) return id;
  const Node* split = editor.produced_by<Reshape>(part);
  if (!split) return id;
  const Tensor& source = editor.tensor(split->inputs[0]);
  const Dims &heads = source.dims, &apart = editor.tensor(part).dims, &all = editor.tensor(id).dims;
  if (heads.rank() != 4 || all.rank() != 4 ||
      apart != Dims{heads[0], heads[1], 1, heads[2], heads[3]} || all[0] != heads[0] ||
      all[2] != heads[2] || all[3] != heads[3] || source.dtype != editor.tensor(id).dtype)
    return id;
  return split->inputs[0];
}

class AttentionWriter {
 public:
  explicit AttentionWriter(GraphEditor& editor) : editor_(editor) {}

  // The operand with four axes; the reshape becomes a view later.
  TensorId reshaped(TensorId id, const Dims& dims) {
    const Tensor tensor = editor_.tensor(id);
    if (tensor.dims == dims) return id;
    const TensorId result = editor_.add_intermediate(tensor.name + ".bhsd", dims, tensor.dtype);
    editor_.add({tensor.name + "_reshape", Reshape{dims}, {id}, {result}, f32});
    return result;
  }
  TensorId last_two_swapped(TensorId id) {
    const Tensor tensor = editor_.tensor(id);
    const int rank = tensor.dims.rank();
    Dims permutation;
    for (int axis = 0; axis < rank; ++axis) permutation.push_back(axis);
    std::swap(permutation[rank - 1], permutation[rank - 2]);
    Dims dims = tensor.dims;
    std::swap(dims[rank - 1], dims[rank - 2]);
    const TensorId result =
        editor_.add_intermediate(tensor.name + ".transposed", dims, tensor.dtype);
    editor_.add({tensor.name + "_transpose", Transpose{permutation}, {id}, {result}, f32});
    return result;
  }
  // An intermediate with four axes that is reshaped to `target`.
  TensorId result_for(TensorId target, const Dims& dims) {
    if (target == kNoTensor || editor_.tensor(target).dims == dims) return target;
    const TensorId result = editor_.add_intermediate(editor_.tensor(target).name + ".bhsd", dims,
                                                     editor_.tensor(target).dtype);
    pending_.push_back({editor_.tensor(target).name + "_reshape",
                        Reshape{editor_.tensor(target).dims},
                        {result},
                        {target},
                        f32});
    return result;
  }
  // `target` is max(result, floor), where `result` is written by attention.
  TensorId raised_to(TensorId target, TensorId floor) {
    if (target == kNoTensor) return target;
    const Tensor tensor = editor_.tensor(target);
    const TensorId result = editor_.add_intermediate(tensor.name + ".before", tensor.dims, f32);
    pending_.push_back({tensor.name + "_or_sink",
                        Pointwise{.mode = PointwiseMode::max},
                        {result, floor, kNoTensor},
                        {target},
                        f32});
    return result;
  }
  void finish() {
    for (Node& node : pending_) editor_.add(std::move(node));
  }

 private:
  GraphEditor& editor_;
  std::vector<Node> pending_;
};

// Whether all these nodes may be removed together with the rounding of their results.
bool may_disappear(const GraphEditor& editor, const std::vector<NodeId>& nodes) {
  for (NodeId id : nodes) {
    const Node& node = editor.node(id);
    // Masks of zeros and ones are exact in every dtype.
    if (std::holds_alternative<Rng>(node.op)) continue;
    const bool exact = editor.tensor(node.outputs[0]).dtype == boolean;
    if (!exact && !may_vanish(editor, node.outputs[0])) return false;
  }
  return true;
}

// Returns the name of the attention; nullopt where nothing matches.
std::optional<std::string> raise_one(LoweredGraph& lowered, GraphEditor& editor, NodeId id) {
  const Node product = editor.node(id);
  AttentionMatch m;
  const auto [scores, readers] =
      match_softmax(editor, match_dropout(editor, product.inputs[Matmul::a], m), m);
  if (scores == kNoTensor || !match_scores(editor, scores, readers, m.scores)) return std::nullopt;
  m.v = without_repeats(editor, product.inputs[Matmul::b]);
  const Node first = *m.scores.product;
  const TensorId query_in = first.inputs[Matmul::a],
                 key_in = without_repeats(editor, first.inputs[Matmul::b]);
  const MaskBounds& mask = m.scores.mask;
  if (!overrides_agree(first, Matmul::m_override, Matmul::n_override, Matmul::k_override, mask) ||
      !overrides_agree(product, Matmul::m_override, Matmul::k_override, Matmul::n_override, mask))
    return std::nullopt;
  if (!may_disappear(editor, m.nodes) || !may_disappear(editor, m.scores.nodes))
    return std::nullopt;
  const int rank = editor.tensor(scores).dims.rank();
  if (rank != 4 && m.has_options()) return std::nullopt;
  for (TensorId operand : {query_in, key_in, m.v})
    if (!is_floating(editor.tensor(operand).dtype)) return std::nullopt;
  // fp8 attention rounds its weights; the matched operations do not.
  if (!may_vanish(editor, query_in)) return std::nullopt;

  const Dims q_dims = editor.tensor(query_in).dims;
  Dims k_dims = editor.tensor(key_in).dims;
  std::swap(k_dims[rank - 1], k_dims[rank - 2]);
  const auto q = four_axes(q_dims, q_dims), k = four_axes(k_dims, q_dims),
             v = four_axes(editor.tensor(m.v).dims, q_dims);
  if (!q || !k || !v || (*k)[0] != (*q)[0] || (*v)[0] != (*q)[0]) return std::nullopt;
  if ((*q)[1] % (*k)[1] != 0 || (*q)[1] % (*v)[1] != 0) return std::nullopt;
  for (TensorId length : {mask.seq_len_q, mask.seq_len_kv})
    if (length != kNoTensor && editor.tensor(length).dims != Dims{(*q)[0], 1, 1, 1})
      return std::nullopt;
  if (mask.seq_len_q != kNoTensor && mask.seq_len_kv == kNoTensor) return std::nullopt;
  if (m.sink != kNoTensor && (editor.tensor(m.sink).dims != Dims{1, (*q)[1], 1, 1} ||
                              !is_floating(editor.tensor(m.sink).dtype)))
    return std::nullopt;

  AttentionForward op;
  if (!set_bounds(op, mask, (*q)[2], (*k)[2])) return std::nullopt;
  op.scale = m.scores.constant_scale;
  if (m.scores.scale == kNoTensor && !op.scale) op.scale = 1.0;
  op.soft_cap = m.scores.soft_cap;
  op.score_modifier = m.scores.modifier;
  op.dropout = m.dropout;

  const std::size_t count = m.nodes.size() + m.scores.nodes.size() + 1;
  editor.remove(id);
  for (const auto& nodes : {m.nodes, m.scores.nodes})
    for (NodeId node : nodes) editor.remove(node);
  AttentionWriter writer(editor);
  const Dims o_dims = {(*q)[0], (*q)[1], (*q)[2], (*v)[3]},
             stats_dims = {(*q)[0], (*q)[1], (*q)[2], 1};
  Node node{product.name + "_attention", op, {}, {}, product.compute};
  node.inputs.assign(AttentionForward::scale_o + 1, kNoTensor);
  node.outputs.assign(AttentionForward::amax_o + 1, kNoTensor);
  using Op = AttentionForward;
  node.inputs[Op::q] = writer.reshaped(query_in, *q);
  node.inputs[Op::k] = writer.reshaped(writer.last_two_swapped(key_in), *k);
  node.inputs[Op::v] = writer.reshaped(m.v, *v);
  node.inputs[Op::bias] = m.scores.bias;
  node.inputs[Op::seq_len_q] = mask.seq_len_q;
  node.inputs[Op::seq_len_kv] = mask.seq_len_kv;
  node.inputs[Op::dropout_seed] = m.seed;
  node.inputs[Op::dropout_offset] = m.offset;
  node.inputs[Op::dropout_mask] = m.mask;
  node.inputs[Op::scale_tensor] = m.scores.scale;
  node.inputs[Op::sink] = m.sink;
  for (std::size_t n = 0; n < m.scores.modifier_inputs.size(); ++n)
    node.inputs[Op::score_input0 + n] = m.scores.modifier_inputs[n];
  node.outputs[Op::o] = writer.result_for(product.outputs[0], o_dims);
  if (m.sink != kNoTensor && mask.seq_len_q != kNoTensor) {
    // Attention gives rows past seq_len_q no sink; the matched operations give it to all rows.
    node.outputs[Op::stats] = writer.raised_to(m.stats, m.sink);
    node.outputs[Op::max] = writer.raised_to(m.max, m.sink);
    if (m.sum_exp != kNoTensor)
      node.outputs[Op::sum_exp] = writer.raised_to(m.sum_exp, editor.constant("one", 1.0, f32, 4));
  } else {
    node.outputs[Op::stats] = writer.result_for(m.stats, stats_dims);
    node.outputs[Op::max] = m.max;
    node.outputs[Op::sum_exp] = m.sum_exp;
  }
  node.outputs[Op::rng_dump] = m.rng_dump;
  const NodeId added = editor.add(std::move(node));
  writer.finish();
  lowered.notes.push_back(fmt::format(
      "raised {} small operations ending in '{}' to attention_forward", count, product.name));
  return editor.node(added).name;
}

}  // namespace

void raise_attention(LoweredGraph& lowered, const EngineQuery& engines) {
  // Matches by the name of the second matmul: those whose attention no engine takes stay as they
  // are.
  std::set<std::string> kept;
  while (true) {
    LoweredGraph attempt{lowered.graph.clone(), {}, lowered.notes};
    GraphEditor editor(attempt.graph);
    const NodeId count = editor.node_count();
    std::map<std::string, std::string> raised;  // attention -> its second matmul
    for (NodeId id = 0; id < count; ++id) {
      if (editor.removed(id) || !std::holds_alternative<Matmul>(editor.node(id).op)) continue;
      const std::string product = editor.node(id).name;
      if (kept.contains(product)) continue;
      if (const auto name = raise_one(attempt, editor, id)) raised.emplace(*name, product);
    }
    if (raised.empty()) return;
    editor.finish();
    simplify(attempt);  // the index arithmetic of the masks is dead now
    const std::size_t before = kept.size();
    for (const Node& node : attempt.graph.nodes())
      if (const auto found = raised.find(node.name);
          found != raised.end() && !engines.has_fast_engine(attempt.graph, node))
        kept.insert(found->second);
    if (kept.size() > before) continue;
    lowered = std::move(attempt);
    return;
  }
}

}  // namespace ashlar
