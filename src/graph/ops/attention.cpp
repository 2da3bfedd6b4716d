// Definition of attention.
#include <algorithm>
#include <cmath>

#include "base/checked.hpp"
#include "graph/ops/define.hpp"
#include "graph/score_program.hpp"

namespace ashlar {

namespace {

struct AttentionShape {
  Dims o, stats, scores;
};

// k or v: `keys` is its sequence length, or the capacity of its page table.
struct KeySource {
  bool paged = false;
  std::int64_t keys = 0;
};

KeySource check_key_source(const NodeContext& node, int slot, int table_slot) {
  const Dims& dims = node.input(slot).dims;
  const Dims& q = node.input(0).dims;
  const std::int64_t heads = dims[1];
  if (heads < 1 || q[1] % heads != 0)
    node.reject(fmt::format("heads of {}", node.input_name(slot)), heads,
                "a divisor of q's {} heads", q[1]);
  if (!node.has_input(table_slot)) {
    if (dims[0] != q[0])
      node.reject(fmt::format("batch of {}", node.input_name(slot)), dims[0], "{}, that of q",
                  q[0]);
    return {false, dims[2]};
  }
  node.require_rank(table_slot, 4, 4);
  node.require_integer(table_slot);
  const Tensor& table = node.input(table_slot);
  node.require_dims(table_slot, {q[0], 1, table.dims[2], 1});
  for (int plain : {slot, table_slot})
    if (node.input(plain).ragged_offset != kNoTensor)
      node.reject(fmt::format("input {}", node.input_name(plain)), "a ragged tensor",
                  "a plain one: pages are found through the table");
  return {true, checked_mul(table.dims[2], dims[2])};
}

// Keys per batch; fills in max_seq_len_kv of paged attention.
template <class Attention>
std::int64_t check_keys(const NodeContext& node, Attention& op) {
  const KeySource k = check_key_source(node, Attention::k, Attention::page_table_k);
  const KeySource v = check_key_source(node, Attention::v, Attention::page_table_v);
  if (!k.paged && !v.paged) {
    if (k.keys != v.keys) node.reject("sequence length of v", v.keys, "{}, that of k", k.keys);
    if (op.max_seq_len_kv)
      node.reject("max_seq_len_kv", *op.max_seq_len_kv, "none without a page table");
    return k.keys;
  }
  const std::int64_t most = std::min(k.keys, v.keys);
  if (!op.max_seq_len_kv) op.max_seq_len_kv = k.paged ? v.paged ? most : v.keys : k.keys;
  const std::int64_t keys = *op.max_seq_len_kv;
  for (const KeySource& source : {k, v}) {
    if (source.paged ? keys <= source.keys && keys >= 0 : keys == source.keys) continue;
    if (source.paged)
      node.reject("max_seq_len_kv", keys, "0 to {}, the keys the page table can hold", source.keys);
    node.reject("max_seq_len_kv", keys, "{}, the length of the unpaged operand", source.keys);
  }
  return keys;
}

template <class Attention>
void check_dropout(const NodeContext& node, const Attention& op, const Dims& scores) {
  if (!(op.dropout >= 0.0 && op.dropout < 1.0))
    node.reject("dropout", op.dropout, "a probability in [0, 1)");
  const bool seeded = node.has_input(Attention::dropout_seed),
             masked = node.has_input(Attention::dropout_mask);
  if (op.dropout > 0.0 && seeded == masked)
    node.reject("dropout source", seeded ? "both" : "none",
                "dropout_seed (with dropout_offset) or dropout_mask");
  if (op.dropout == 0.0 && (seeded || masked))
    node.reject("dropout", op.dropout, "a probability above 0 with dropout_seed or dropout_mask");
  if (node.has_input(Attention::dropout_offset) && !seeded)
    node.reject("input dropout_offset", "a tensor", "none without dropout_seed");
  if (node.has_output(Attention::rng_dump) && !seeded)
    node.reject("output rng_dump", "a tensor", "none without dropout_seed");
  for (int slot : {Attention::dropout_seed, Attention::dropout_offset}) {
    node.require_one_element(slot);
    node.require_integer(slot);
  }
  node.require_dims(Attention::dropout_mask, scores);
}

void check_program(const NodeContext& node, const char* name, const ScoreProgram& program,
                   const ScoreOperands& operands) {
  if (const auto fault = find_fault(program, operands))
    node.reject(fmt::format("{} step {}", name, fault->step), fault->got, "{}", fault->expected);
}

template <class Attention>
ScoreOperands check_scores(const NodeContext& node, const Attention& op, const Dims& scores) {
  node.require_broadcastable(Attention::bias, scores);
  node.require_floating(Attention::bias);
  if (op.soft_cap && !(*op.soft_cap > 0.0 && std::isfinite(*op.soft_cap)))
    node.reject("soft_cap", *op.soft_cap, "a finite value above 0");
  ScoreOperands operands;
  for (int i = 0; i < 4; ++i) {
    const int slot = Attention::score_input0 + i;
    node.require_broadcastable(slot, scores);
    operands.inputs[i] = node.has_input(slot);
  }
  check_program(node, "score_modifier", op.score_modifier, operands);

  node.require_dims(Attention::sink, {1, scores[1], 1, 1});
  node.require_floating(Attention::sink);
  for (const auto& [name, extent] :
       {std::pair{"block_rows", op.block_rows}, std::pair{"block_columns", op.block_columns}})
    if (extent < 1) node.reject(name, extent, "at least 1");
  const auto blocks = [](std::int64_t extent, std::int64_t size) {
    return extent / size + (extent % size != 0 ? 1 : 0);
  };
  node.require_broadcastable(Attention::block_mask,
                             {scores[0], scores[1], blocks(scores[2], op.block_rows),
                              blocks(scores[3], op.block_columns)});
  if (node.has_input(Attention::block_mask) && node.input(Attention::block_mask).dtype != boolean)
    node.reject(fmt::format("dtype of {}", node.input_name(Attention::block_mask)),
                node.input(Attention::block_mask).dtype, "bool");
  return operands;
}

void check_scale_operands(const NodeContext& node, int first, int last) {
  for (int slot = first; slot <= last; ++slot) {
    node.require_one_element(slot);
    node.require_floating(slot);
  }
}

// Checks shared by forward and backward; fills in the scale.
template <class Attention>
AttentionShape check_common(NodeContext& node, Attention& op) {
  for (int slot : {Attention::q, Attention::k, Attention::v}) {
    node.require_rank(slot, 4, 4);
    node.require_floating(slot);
  }
  const Dims& q = node.input(Attention::q).dims;
  const Dims& k = node.input(Attention::k).dims;
  const Dims& v = node.input(Attention::v).dims;
  if (k[3] != q[3]) node.reject("head dim of k", k[3], "{}, that of q", q[3]);
  const std::int64_t keys = check_keys(node, op);

  const AttentionShape shape{
      {q[0], q[1], q[2], v[3]}, {q[0], q[1], q[2], 1}, {q[0], q[1], q[2], keys}};
  for (int slot : {Attention::seq_len_q, Attention::seq_len_kv}) {
    node.require_dims(slot, {q[0], 1, 1, 1});
    node.require_integer(slot);
  }
  check_scale_operands(node, Attention::scale_tensor, Attention::scale_tensor);
  if (!op.scale && !node.has_input(Attention::scale_tensor))
    op.scale = q[3] == 0 ? 1.0 : 1.0 / std::sqrt(static_cast<double>(q[3]));
  if (op.left_bound && *op.left_bound < 1)
    node.reject("left_bound", *op.left_bound, "at least 1 (1 sees only the diagonal)");
  if (op.right_bound && *op.right_bound < 0)
    node.reject("right_bound", *op.right_bound, "at least 0 (0 is causal)");
  check_dropout(node, op, shape.scores);
  node.infer_dims(Attention::rng_dump, shape.scores);
  node.infer_dtype(Attention::rng_dump, boolean);
  node.infer_strides_like(Attention::rng_dump, Tensor{});
  return shape;
}

void infer_amax(NodeContext& node, int first, int last) {
  for (int slot = first; slot <= last; ++slot) {
    node.infer_dims(slot, {1, 1, 1, 1});
    node.infer_dtype(slot, f32);
    node.infer_strides_like(slot, Tensor{});
  }
}

void infer_attention_forward(NodeContext& node) {
  auto& op = node.op<AttentionForward>();
  const AttentionShape shape = check_common(node, op);
  check_scores(node, op, shape.scores);
  check_scale_operands(node, AttentionForward::descale_q, AttentionForward::scale_o);
  const Tensor& q = node.input(AttentionForward::q);
  node.infer_dims(AttentionForward::o, shape.o);
  node.infer_dtype(AttentionForward::o, q.dtype);
  node.infer_strides_like(AttentionForward::o, q);
  for (int slot : {AttentionForward::stats, AttentionForward::max, AttentionForward::sum_exp}) {
    node.infer_dims(slot, shape.stats);
    node.infer_dtype(slot, q.dtype == f64 ? f64 : f32);
    node.infer_strides_like(slot, Tensor{});
  }
  infer_amax(node, AttentionForward::amax_s, AttentionForward::amax_o);
}

void infer_attention_backward(NodeContext& node) {
  auto& op = node.op<AttentionBackward>();
  const AttentionShape shape = check_common(node, op);
  ScoreOperands operands = check_scores(node, op, shape.scores);
  operands.gradient = true;
  check_program(node, "score_modifier_gradient", op.score_modifier_gradient, operands);
  if (op.score_modifier_gradient.empty()) {
    if (const auto step = undifferentiable_step(op.score_modifier))
      node.reject(fmt::format("score_modifier step {}", *step),
                  "an activation gradient whose second operand depends on the score",
                  "a step that can be differentiated, or score_modifier_gradient");
  } else if (op.score_modifier.empty()) {
    node.reject("score_modifier_gradient",
                fmt::format("{} steps", op.score_modifier_gradient.size()),
                "none without score_modifier");
  }
  check_scale_operands(node, AttentionBackward::descale_q, AttentionBackward::scale_dp);
  for (int slot : {AttentionBackward::o, AttentionBackward::d_o}) {
    node.require_dims(slot, shape.o);
    node.require_floating(slot);
  }
  node.require_dims(AttentionBackward::stats, shape.stats);
  node.require_floating(AttentionBackward::stats);
  const auto infer_gradient = [&](int output, int of, const char* name) {
    if (!node.has_output(output)) return;
    if (!node.has_input(of))
      node.reject(fmt::format("output d{}", name), "a tensor", "none without an input {}", name);
    const Tensor& tensor = node.input(of);
    node.infer_dims(output, tensor.dims);
    node.infer_dtype(output, tensor.dtype);
    node.infer_strides_like(output, tensor);
  };
  infer_gradient(AttentionBackward::dq, AttentionBackward::q, "q");
  infer_gradient(AttentionBackward::dk, AttentionBackward::k, "k");
  infer_gradient(AttentionBackward::dv, AttentionBackward::v, "v");
  infer_gradient(AttentionBackward::dbias, AttentionBackward::bias, "bias");
  infer_gradient(AttentionBackward::dsink, AttentionBackward::sink, "sink");
  infer_amax(node, AttentionBackward::amax_dq, AttentionBackward::amax_dp);
}

template <class Attention>
std::int64_t key_count(const NodeShapes& node) {
  return node.op<Attention>().max_seq_len_kv.value_or(node.input(Attention::k)[2]);
}

template <class Attention>
Contents attention_contents(const NodeShapes& node, int slot) {
  constexpr double kWeightScale = 128;  // softmax weights fill the range of fp8 types
  const auto keys = static_cast<double>(std::max<std::int64_t>(key_count<Attention>(node), 1));
  const auto pages_of = [&](int container) {
    return indices_below(node.input(container)[0], 1, 1e6);
  };
  if constexpr (std::is_same_v<Attention, AttentionBackward>) {
    if (slot == Attention::scale_dp) return always(kWeightScale);
    if (slot == Attention::descale_dp) return always(1 / kWeightScale);
    // Close to what the forward operation computes, so that the weights sum to about 1.
    if (slot == Attention::stats) return values_within(std::log(keys), std::log(keys) + 1);
  }
  switch (slot) {
    case Attention::seq_len_q: return lengths_up_to(node.input(Attention::q)[2]);
    case Attention::seq_len_kv: return lengths_up_to(key_count<Attention>(node));
    case Attention::dropout_seed:
    case Attention::dropout_offset: return seeds();
    case Attention::dropout_mask: return keeps_with(1 - node.op<Attention>().dropout);
    case Attention::scale_tensor:
      return always(1 / std::sqrt(std::max(1.0, static_cast<double>(node.input(Attention::q)[3]))));
    case Attention::page_table_k: return pages_of(Attention::k);
    case Attention::page_table_v: return pages_of(Attention::v);
    case Attention::block_mask: return keeps_with(0.75);
    case Attention::scale_s: return always(kWeightScale);
    case Attention::descale_s: return always(1 / kWeightScale);
    default: return slot >= Attention::descale_q ? values_within(0.5, 1.5) : Contents{};
  }
}

// (query, key) pairs; for paged keys by max_seq_len_kv, not by the container.
template <class Attention>
double pair_count(const NodeShapes& node) {
  const Dims& q = node.input(Attention::q);
  return count_of({q[0], q[1], q[2]}) * static_cast<double>(key_count<Attention>(node));
}

// Those inside the bounds of the mask.
template <class Attention>
double visible_pair_count(const NodeShapes& node) {
  const auto& op = node.op<Attention>();
  if (!op.left_bound && !op.right_bound) return pair_count<Attention>(node);
  const Dims& q = node.input(Attention::q);
  const std::int64_t queries = q[2], keys = key_count<Attention>(node);
  const std::int64_t shift = op.alignment == MaskAlignment::bottom_right ? keys - queries : 0;
  double visible = 0;  // of one head
  for (std::int64_t row = 0; row < queries; ++row) {
    const std::int64_t last = op.right_bound ? row + shift + *op.right_bound : keys - 1;
    const std::int64_t first = op.left_bound ? row + shift - *op.left_bound + 1 : 0;
    visible += static_cast<double>(
        std::max<std::int64_t>(0, std::min(last, keys - 1) - std::max<std::int64_t>(first, 0) + 1));
  }
  return count_of({q[0], q[1]}) * visible;
}

// Two matmuls forward, five backward.
template <class Attention, double (*count_pairs)(const NodeShapes&)>
double attention_flops(const NodeShapes& node) {
  constexpr double kMatmuls = std::is_same_v<Attention, AttentionForward> ? 2 : 5;
  return kMatmuls * count_pairs(node) *
         static_cast<double>(node.input(Attention::q)[3] + node.input(Attention::v)[3]);
}

std::vector<Value> sample_attention_forward(Graph& g, DType t) {
  const Dims dims = {1, 2, 16, 8};
  return {g.attention(g.input("q", dims, t), g.input("k", dims, t), g.input("v", dims, t)).first};
}
std::vector<Value> sample_attention_backward(Graph& g, DType t) {
  const Dims dims = {1, 2, 16, 8};
  const AttentionGradients gradients = g.attention_backward(
      g.input("q", dims, t), g.input("k", dims, t), g.input("v", dims, t), g.input("o", dims, t),
      g.input("do", dims, t), g.input("stats", {1, 2, 16, 1}, parameter_dtype(t)));
  return {gradients.dq, gradients.dk, gradients.dv};
}

void attention_gradient(GradientContext& c) {
  using Self = AttentionForward;
  using Backward = AttentionBackward;
  c.only_output(Self::o);
  for (const int slot : {Self::descale_q, Self::descale_k, Self::descale_v, Self::descale_s,
                         Self::scale_s, Self::scale_o})
    if (c.input(slot)) c.refuse("fp8 scales of the gradients are not known");
  for (const int slot : {Self::scale_tensor, Self::score_input0, Self::score_input1,
                         Self::score_input2, Self::score_input3})
    if (c.wants(slot)) c.refuse("scale_tensor and score inputs have none");
  Backward op;
  static_cast<AttentionAttributes&>(op) = c.op<Self>();
  std::vector<AnyOperand> operands = c.shared_operands(op);
  operands.push_back({Backward::o, c.output(Self::o)});
  operands.push_back({Backward::d_o, c.dy()});
  operands.push_back({Backward::stats, c.require_output(Self::stats)});
  std::vector<AnyWanted> wanted = {{Backward::dk}, {Backward::dv}};
  if (c.wants(Self::bias)) wanted.push_back({Backward::dbias});
  if (c.wants(Self::sink)) wanted.push_back({Backward::dsink});
  const auto out = c.graph().apply_any(op, operands, wanted);
  constexpr std::pair<int, int> kGradients[] = {{Self::q, Backward::dq},
                                                {Self::k, Backward::dk},
                                                {Self::v, Backward::dv},
                                                {Self::bias, Backward::dbias},
                                                {Self::sink, Backward::dsink}};
  for (const auto& [input, gradient] : kGradients)
    if (c.wants(input)) c.add(input, out[static_cast<std::size_t>(gradient)]);
}

}  // namespace

template <>
OpTraits define_traits<AttentionForward>() {
  using Self = AttentionForward;
  return {.name = "attention_forward",
          .doc_page = "attention",
          .infer = infer_attention_forward,
          .gradient = attention_gradient,
          .sample = sample_attention_forward,
          .contents = attention_contents<Self>,
          .flops = attention_flops<Self, pair_count<Self>>,
          .visible_flops = attention_flops<Self, visible_pair_count<Self>>,
          .is_compute_bound = true,
          .ragged = RaggedLengths{.of_keys = Self::seq_len_kv,
                                  .key_inputs = {Self::k, Self::v},
                                  .of_others = Self::seq_len_q},
          .fused_inputs = {Self::q, Self::k, Self::v},
          .rereads_inputs = true};
}

template <>
OpTraits define_traits<AttentionBackward>() {
  using Self = AttentionBackward;
  return {.name = "attention_backward",
          .doc_page = "attention",
          .infer = infer_attention_backward,
          .sample = sample_attention_backward,
          .contents = attention_contents<Self>,
          .flops = attention_flops<Self, pair_count<Self>>,
          .visible_flops = attention_flops<Self, visible_pair_count<Self>>,
          .is_compute_bound = true,
          .ragged = RaggedLengths{.of_keys = Self::seq_len_kv,
                                  .key_inputs = {Self::k, Self::v},
                                  .key_outputs = {Self::dk, Self::dv},
                                  .of_others = Self::seq_len_q}};
}

}  // namespace ashlar
