// matmul, scale, bias, masks, softmax (already raised), dropout, matmul  becomes attention_forward.
#include <fmt/format.h>

#include "plan/lowered.hpp"
#include "plan/mask_analysis.hpp"
#include "plan/raise_match.hpp"

namespace ashlar {

namespace {

struct AttentionMatch {
  TensorId q = kNoTensor, key_transposed = kNoTensor, v = kNoTensor;
  TensorId bias = kNoTensor, scale = kNoTensor, seed = kNoTensor, offset = kNoTensor;
  TensorId stats = kNoTensor;
  AttentionForward op;
  MaskBounds mask;
  std::vector<NodeId> nodes;  // that disappear
};

bool is_single(const GraphEditor& editor, TensorId id) {
  return element_count(editor.tensor(id).dims) == 1;
}

// weights -> [mul 1/(1-p)] -> [mul mask by rng] -> softmax: returns the softmax's result, or
// kNoTensor.
TensorId match_dropout(const GraphEditor& editor, TensorId weights, AttentionMatch& m) {
  if (editor.made_by<SoftmaxForward>(weights)) return weights;
  const Node* rescale = plain(editor, weights, PointwiseMode::mul);
  if (!rescale || editor.uses(weights) != 1) return kNoTensor;
  const auto scaled =
      split_operands(*rescale, [&](TensorId t) { return constant_value(editor, t).has_value(); });
  if (!scaled) return kNoTensor;
  const Node* drop = plain(editor, scaled->second, PointwiseMode::mul);
  if (!drop || editor.uses(scaled->second) != 1) return kNoTensor;
  const auto masked =
      split_operands(*drop, [&](TensorId t) { return editor.made_by<Rng>(t) != nullptr; });
  if (!masked || editor.uses(masked->first) != 1) return kNoTensor;
  const Node* rng = editor.made_by<Rng>(masked->first);
  const auto& op = std::get<Rng>(rng->op);
  if (op.distribution != RngDistribution::bernoulli ||
      editor.tensor(masked->first).dims != editor.tensor(weights).dims)
    return kNoTensor;
  // Only seeds that arrive as tensors: attention takes them from nowhere else.
  if (rng->inputs[Rng::seed_tensor] == kNoTensor || op.offset != 0) return kNoTensor;
  const double keep = op.probability;
  if (!(keep > 0 && keep < 1) ||
      std::fabs(*constant_value(editor, scaled->first) * keep - 1) > 1e-6)
    return kNoTensor;
  m.op.dropout = 1 - keep;
  m.seed = rng->inputs[Rng::seed_tensor];
  m.offset = rng->inputs[Rng::offset_tensor];
  for (TensorId id : {weights, scaled->second, masked->first})
    m.nodes.push_back(editor.producer_id(id));
  return masked->second;
}

// Whether `id` is a product, possibly scaled, divided or masked.
bool leads_to_matmul(const GraphEditor& editor, TensorId id) {
  const Node* node = editor.producer(id);
  if (!node) return false;
  if (std::holds_alternative<Matmul>(node->op)) return true;
  const auto* op = std::get_if<Pointwise>(&node->op);
  if (!op) return false;
  if (op->mode == PointwiseMode::mul)
    return leads_to_matmul(editor, node->inputs[0]) || leads_to_matmul(editor, node->inputs[1]);
  return (op->mode == PointwiseMode::div || op->mode == PointwiseMode::binary_select) &&
         leads_to_matmul(editor, node->inputs[0]);
}

// scores <- select(-inf) <- add bias <- mul scale <- matmul, each optional but the last.
bool match_scores(const GraphEditor& editor, TensorId scores, AttentionMatch& m) {
  const int rank = editor.tensor(scores).dims.rank();
  bool scaled = false;
  while (true) {
    if (editor.uses(scores) != 1) return false;
    const Node* node = editor.producer(scores);
    if (!node) return false;
    m.nodes.push_back(editor.producer_id(scores));
    if (std::holds_alternative<Matmul>(node->op)) {
      for (int slot : {Matmul::m_override, Matmul::n_override, Matmul::k_override})
        if (node->inputs[static_cast<std::size_t>(slot)] != kNoTensor) return false;
      m.q = node->inputs[Matmul::a];
      m.key_transposed = node->inputs[Matmul::b];
      return true;
    }
    if (!std::holds_alternative<Pointwise>(node->op) || !is_plain(*node)) return false;
    switch (std::get<Pointwise>(node->op).mode) {
      case PointwiseMode::binary_select: {
        const auto fill = constant_value(editor, node->inputs[Pointwise::b]);
        if (fill != -std::numeric_limits<double>::infinity()) return false;
        if (!analyse_mask(editor, node->inputs[Pointwise::predicate], rank - 2, rank - 1, m.mask))
          return false;
        scores = node->inputs[Pointwise::x];
        break;
      }
      case PointwiseMode::add: {
        if (scaled || m.bias != kNoTensor)
          return false;  // a later scale would apply to the bias too
        const auto operands = split_operands(*node, [&](TensorId t) {
          return !leads_to_matmul(editor, t) && editor.tensor(t).dims.rank() == 4 &&
                 is_floating(editor.tensor(t).dtype);
        });
        if (!operands) return false;
        m.bias = operands->first;
        scores = operands->second;
        break;
      }
      case PointwiseMode::mul: {
        const auto operands = split_operands(
            *node, [&](TensorId t) { return is_single(editor, t) && !editor.producer(t); });
        if (scaled || !operands) return false;
        if (const auto value = constant_value(editor, operands->first))
          m.op.scale = *value;
        else if (is_floating(editor.tensor(operands->first).dtype))
          m.scale = operands->first;
        else
          return false;
        scaled = true;
        scores = operands->second;
        break;
      }
      case PointwiseMode::div: {
        const auto value = constant_value(editor, node->inputs[1]);
        if (scaled || !value || *value == 0) return false;
        m.op.scale = 1 / *value;
        scaled = true;
        scores = node->inputs[0];
        break;
      }
      default: return false;
    }
  }
}

// Batch and head extents of an operand seen as [B, H, rows, columns]: rank 3 has one head; rank 5
// has its heads split in two axes, of which a key or value may leave out the second (GQA).
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

class AttentionWriter {
 public:
  explicit AttentionWriter(GraphEditor& editor) : editor_(editor) {}

  // The operand with four axes; reshapes become views later.
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
  // An intermediate of four axes whose elements, reshaped, are `target`.
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
  void finish() {
    for (Node& node : pending_) editor_.add(std::move(node));
  }

 private:
  GraphEditor& editor_;
  std::vector<Node> pending_;
};

bool raise_one(LoweredGraph& lowered, GraphEditor& editor, NodeId id) {
  const Node product = editor.node(id);
  AttentionMatch m;
  const TensorId softmax_result = match_dropout(editor, product.inputs[Matmul::a], m);
  if (softmax_result == kNoTensor || editor.uses(softmax_result) != 1) return false;
  const Node softmax = *editor.producer(softmax_result);
  const int rank = editor.tensor(softmax_result).dims.rank();
  const auto& attributes = std::get<SoftmaxForward>(softmax.op);
  if (attributes.log || attributes.axis != rank - 1) return false;
  for (std::size_t slot = 2; slot < product.inputs.size(); ++slot)
    if (product.inputs[slot] != kNoTensor) return false;
  m.nodes.push_back(editor.producer_id(softmax_result));
  m.stats = softmax.outputs[SoftmaxForward::stats];
  m.v = product.inputs[Matmul::b];
  if (!match_scores(editor, softmax.inputs[0], m)) return false;
  for (NodeId inner : m.nodes) {
    const Node& node = editor.node(inner);
    // A mask of zeros and ones is exact in every dtype.
    if (!std::holds_alternative<Rng>(node.op) && !may_vanish(editor, node.outputs[0])) return false;
  }
  if (rank != 4 && (m.bias != kNoTensor || m.op.dropout > 0)) return false;
  for (TensorId operand : {m.q, m.key_transposed, m.v})
    if (!is_floating(editor.tensor(operand).dtype)) return false;

  const Dims q_dims = editor.tensor(m.q).dims;
  Dims k_dims = editor.tensor(m.key_transposed).dims;
  std::swap(k_dims[rank - 1], k_dims[rank - 2]);
  const auto q = four_axes(q_dims, q_dims), k = four_axes(k_dims, q_dims),
             v = four_axes(editor.tensor(m.v).dims, q_dims);
  if (!q || !k || !v || (*k)[0] != (*q)[0] || (*v)[0] != (*q)[0]) return false;
  if ((*q)[1] % (*k)[1] != 0 || (*q)[1] % (*v)[1] != 0) return false;
  for (TensorId length : {m.mask.seq_len_q, m.mask.seq_len_kv})
    if (length != kNoTensor && editor.tensor(length).dims != Dims{(*q)[0], 1, 1, 1}) return false;
  if (m.mask.seq_len_q != kNoTensor && m.mask.seq_len_kv == kNoTensor) return false;

  if (m.scale == kNoTensor && !m.op.scale) m.op.scale = 1.0;
  m.op.left_bound = m.mask.left_bound;
  m.op.right_bound = m.mask.right_bound;
  if (m.mask.bottom_right) m.op.alignment = MaskAlignment::bottom_right;

  editor.remove(id);
  for (NodeId node : m.nodes) editor.remove(node);
  AttentionWriter writer(editor);
  const Dims o_dims = {(*q)[0], (*q)[1], (*q)[2], (*v)[3]},
             stats_dims = {(*q)[0], (*q)[1], (*q)[2], 1};
  const TensorId query = writer.reshaped(m.q, *q);
  const TensorId key = writer.reshaped(writer.last_two_swapped(m.key_transposed), *k);
  const TensorId value = writer.reshaped(m.v, *v);
  const TensorId o = writer.result_for(product.outputs[0], o_dims);
  const TensorId stats = writer.result_for(m.stats, stats_dims);
  editor.add({product.name + "_attention",
              m.op,
              {query, key, value, m.bias, m.mask.seq_len_q, m.mask.seq_len_kv, m.seed, m.offset,
               kNoTensor, m.scale},
              {o, stats},
              product.compute});
  writer.finish();
  lowered.notes.push_back(
      fmt::format("raised {} small operations ending in '{}' to attention_forward",
                  m.nodes.size() + 1, product.name));
  return true;
}

}  // namespace

void raise_attention(LoweredGraph& lowered) {
  GraphEditor editor(lowered.graph);
  const NodeId count = editor.node_count();
  bool raised = false;
  for (NodeId id = 0; id < count; ++id)
    if (!editor.removed(id) && std::holds_alternative<Matmul>(editor.node(id).op))
      raised = raise_one(lowered, editor, id) || raised;
  editor.finish();
  if (raised) simplify(lowered);  // the index arithmetic of the masks is dead now
}

}  // namespace ashlar
