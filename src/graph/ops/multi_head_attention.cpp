// Definition of multi-head attention.
#include "graph/multi_head_shapes.hpp"
#include "graph/ops/define.hpp"

namespace ashlar {

namespace {

void check_sizes(const NodeContext& node, const MultiHeadAttentionAttributes& op) {
  if (op.heads < 1) node.reject("heads", op.heads, "at least 1");
  const auto check = [&](const char* name, std::int64_t size) {
    if (size < 0) node.reject(name, size, "at least 0 (0: no projection)");
  };
  check("q_projection", op.q_projection);
  check("k_projection", op.k_projection);
  check("v_projection", op.v_projection);
  check("o_projection", op.o_projection);
}

void check_dropout(const NodeContext& node, const char* name, double probability, int seed,
                   int offset) {
  if (!(probability >= 0.0 && probability < 1.0))
    node.reject(name, probability, "a probability in [0, 1)");
  const auto slot_name = [&](int slot) {
    return node.traits().inputs[static_cast<std::size_t>(slot)].name;
  };
  if (probability > 0.0 && !node.has_input(seed))
    node.reject(fmt::format("input {}", slot_name(seed)), "nothing", "a tensor: {} is above 0",
                name);
  if (probability == 0.0 && node.has_input(seed))
    node.reject(name, probability, "a probability above 0 with {}", slot_name(seed));
  if (node.has_input(offset) && !node.has_input(seed))
    node.reject(fmt::format("input {}", slot_name(offset)), "a tensor", "none without {}",
                slot_name(seed));
  for (int slot : {seed, offset}) {
    node.require_one_element(slot);
    node.require_integer(slot);
  }
}

// Checks common to the three operations.
template <class MultiHead>
MultiHeadShape check_shape(NodeContext& node) {
  const auto& op = node.op<MultiHead>();
  check_sizes(node, op);
  for (int slot : {MultiHead::q, MultiHead::k, MultiHead::v}) {
    node.require_rank(slot, 4, 4);
    node.require_floating(slot);
  }
  const Dims& q = node.input(MultiHead::q).dims;
  const Dims& k = node.input(MultiHead::k).dims;
  const Dims& v = node.input(MultiHead::v).dims;
  if (k[0] != q[0] || v[0] != q[0])
    node.reject("batch of k and v", fmt::format("{} and {}", k[0], v[0]), "{}, that of q", q[0]);
  if (k[1] != 1 && k[1] != q[1]) node.reject("beams of k", k[1], "1 or {}, those of q", q[1]);
  if (v[1] != k[1]) node.reject("beams of v", v[1], "{}, those of k", k[1]);
  if (v[2] != k[2]) node.reject("sequence length of v", v[2], "{}, that of k", k[2]);

  for (int slot : {MultiHead::q, MultiHead::k, MultiHead::v})
    if (node.input(slot).dims[3] < 1)
      node.reject(fmt::format("vector size of {}", node.input_name(slot)), node.input(slot).dims[3],
                  "at least 1");

  const MultiHeadShape shape(op, q, k, v);
  if (shape.head_size != shape.k_head_size)
    node.reject("size of a head of k", shape.k_head_size, "{}, that of q", shape.head_size);
  if (shape.weight_count == 0 && node.has_input(MultiHead::weights))
    node.reject("input weights", "a tensor", "none without projections");
  if (shape.weight_count > 0 && !node.has_input(MultiHead::weights))
    node.reject("input weights", "nothing", "a tensor of {} elements", shape.weight_count);
  node.require_dims(MultiHead::weights, {shape.weight_count});
  node.require_floating(MultiHead::weights);
  node.require_dims(MultiHead::seq_len_q, {shape.batch, shape.beams, 1, 1});
  node.require_dims(MultiHead::seq_len_kv, {shape.batch, shape.key_beams, 1, 1});
  for (int slot : {MultiHead::window_low, MultiHead::window_high})
    node.require_dims(slot, {1, 1, shape.queries, 1});
  for (int slot :
       {MultiHead::seq_len_q, MultiHead::seq_len_kv, MultiHead::window_low, MultiHead::window_high})
    node.require_integer(slot);
  check_dropout(node, "attention_dropout", op.attention_dropout, MultiHead::dropout_seed,
                MultiHead::dropout_offset);
  check_dropout(node, "post_dropout", op.post_dropout, MultiHead::post_dropout_seed,
                MultiHead::post_dropout_offset);
  return shape;
}

void infer_like(NodeContext& node, int output, const Tensor& tensor) {
  node.infer_dims(output, tensor.dims);
  node.infer_dtype(output, tensor.dtype);
  node.infer_strides_like(output, tensor);
}

template <class MultiHead>
void check_output_gradient(NodeContext& node, const MultiHeadShape& shape) {
  node.require_dims(MultiHead::d_o, shape.o_dims());
  node.require_floating(MultiHead::d_o);
}

void infer_multi_head_attention_forward(NodeContext& node) {
  using MultiHead = MultiHeadAttentionForward;
  const MultiHeadShape shape = check_shape<MultiHead>(node);
  node.require_dims(MultiHead::residual, shape.o_dims());
  node.require_floating(MultiHead::residual);
  const Tensor& q = node.input(MultiHead::q);
  node.infer_dims(MultiHead::o, shape.o_dims());
  node.infer_dtype(MultiHead::o, q.dtype);
  node.infer_strides_like(MultiHead::o, q);
}

void infer_multi_head_attention_backward_data(NodeContext& node) {
  using MultiHead = MultiHeadAttentionBackwardData;
  check_output_gradient<MultiHead>(node, check_shape<MultiHead>(node));
  infer_like(node, MultiHead::dq, node.input(MultiHead::q));
  infer_like(node, MultiHead::dk, node.input(MultiHead::k));
  infer_like(node, MultiHead::dv, node.input(MultiHead::v));
}

void infer_multi_head_attention_backward_weights(NodeContext& node) {
  using MultiHead = MultiHeadAttentionBackwardWeights;
  const MultiHeadShape shape = check_shape<MultiHead>(node);
  check_output_gradient<MultiHead>(node, shape);
  if (shape.weight_count == 0)
    node.reject("projections", "none", "at least one: there is nothing to differentiate");
  node.require_dims(MultiHead::previous, {shape.weight_count});
  node.require_floating(MultiHead::previous);
  infer_like(node, MultiHead::dweights, node.input(MultiHead::weights));
}

template <class MultiHead>
Contents multi_head_contents(const NodeShapes& node, int slot) {
  const std::int64_t keys = node.input(MultiHead::k)[2];
  const auto half = static_cast<double>(keys / 2);
  switch (slot) {
    case MultiHead::seq_len_q: return lengths_up_to(node.input(MultiHead::q)[2], -1, 1);
    case MultiHead::seq_len_kv: return lengths_up_to(keys, -1, 1);
    // The first half may begin a window, the second half end one: every step sees something. Beyond
    // that, windows may be empty.
    case MultiHead::window_low: return whole_numbers(0, half, 2, 1);
    case MultiHead::window_high: return whole_numbers(half + 1, static_cast<double>(keys), 1, 2);
    case MultiHead::dropout_seed:
    case MultiHead::dropout_offset:
    case MultiHead::post_dropout_seed:
    case MultiHead::post_dropout_offset: return seeds();
    default: return {};
  }
}

// Four projections and the two attention matmuls of all heads; a backward pass recomputes the
// forward pass and does about twice its FLOPs.
template <class MultiHead>
double multi_head_flops(const NodeShapes& node) {
  constexpr double kPasses = std::is_same_v<MultiHead, MultiHeadAttentionForward> ? 1 : 3;
  const MultiHeadShape shape(node.op<MultiHead>(), node.input(MultiHead::q),
                             node.input(MultiHead::k), node.input(MultiHead::v));
  const double steps = count_of({shape.batch, shape.beams, shape.queries});
  const double key_steps = count_of({shape.batch, shape.key_beams, shape.keys});
  double flops = 2 * steps * static_cast<double>(shape.heads * shape.keys) *
                 static_cast<double>(shape.head_size + shape.value_size);
  for (MultiHeadPart part : kMultiHeadParts) {
    const bool of_keys = part == MultiHeadPart::key || part == MultiHeadPart::value;
    flops += 2 * (of_keys ? key_steps : steps) * static_cast<double>(shape[part].matrix_size());
  }
  return kPasses * flops;
}

// Two heads with all four projections, none larger than the other: 4 matrices of 8 x 8.
template <class Op>
Op multi_head_op() {
  Op op;
  op.heads = 2;
  op.q_projection = op.k_projection = op.v_projection = 4;
  op.o_projection = 8;
  return op;
}
const Dims kSampleSequence = {1, 1, 4, 8}, kSampleWeights = {4 * 8 * 8};

std::vector<Value> sample_multi_head_attention_forward(Graph& g, DType t) {
  using Op = MultiHeadAttentionForward;
  return g
      .apply(multi_head_op<Op>(),
             {{Op::q, g.input("q", kSampleSequence, t)},
              {Op::k, g.input("k", kSampleSequence, t)},
              {Op::v, g.input("v", kSampleSequence, t)},
              {Op::weights, g.input("weights", kSampleWeights, t)}},
             {Op::o})
      .all();
}
std::vector<Value> sample_multi_head_attention_backward_data(Graph& g, DType t) {
  using Op = MultiHeadAttentionBackwardData;
  return g
      .apply(multi_head_op<Op>(),
             {{Op::q, g.input("q", kSampleSequence, t)},
              {Op::k, g.input("k", kSampleSequence, t)},
              {Op::v, g.input("v", kSampleSequence, t)},
              {Op::weights, g.input("weights", kSampleWeights, t)},
              {Op::d_o, g.input("do", kSampleSequence, t)}},
             {Op::dq, Op::dk, Op::dv})
      .all();
}
std::vector<Value> sample_multi_head_attention_backward_weights(Graph& g, DType t) {
  using Op = MultiHeadAttentionBackwardWeights;
  return g
      .apply(multi_head_op<Op>(),
             {{Op::q, g.input("q", kSampleSequence, t)},
              {Op::k, g.input("k", kSampleSequence, t)},
              {Op::v, g.input("v", kSampleSequence, t)},
              {Op::weights, g.input("weights", kSampleWeights, t)},
              {Op::d_o, g.input("do", kSampleSequence, t)}},
             {Op::dweights})
      .all();
}

void multi_head_attention_gradient(GradientContext& c) {
  using Self = MultiHeadAttentionForward;
  using Data = MultiHeadAttentionBackwardData;
  using Weights = MultiHeadAttentionBackwardWeights;
  c.add(Self::residual, c.dy());
  if (c.wants(Self::q) || c.wants(Self::k) || c.wants(Self::v)) {
    Data data;
    static_cast<MultiHeadAttentionAttributes&>(data) = c.op<Self>();
    std::vector<AnyOperand> operands = c.shared_operands(data);
    operands.push_back({Data::d_o, c.dy()});
    const std::vector<AnyWanted> wanted = {{Data::dk}, {Data::dv}};
    const auto out = c.graph().apply_any(data, operands, wanted);
    c.add(Self::q, out[Data::dq]);
    c.add(Self::k, out[Data::dk]);
    c.add(Self::v, out[Data::dv]);
  }
  if (!c.wants(Self::weights)) return;
  Weights weights;
  static_cast<MultiHeadAttentionAttributes&>(weights) = c.op<Self>();
  std::vector<AnyOperand> operands = c.shared_operands(weights);
  operands.push_back({Weights::d_o, c.dy()});
  c.add(Self::weights, c.graph().apply_any(weights, operands, {})[Weights::dweights]);
}

}  // namespace

template <>
OpTraits define_traits<MultiHeadAttentionForward>() {
  return {.name = "multi_head_attention_forward",
          .doc_page = "multi_head_attention",
          .infer = infer_multi_head_attention_forward,
          .gradient = multi_head_attention_gradient,
          .sample = sample_multi_head_attention_forward,
          .contents = multi_head_contents<MultiHeadAttentionForward>,
          .flops = multi_head_flops<MultiHeadAttentionForward>,
          .is_compute_bound = true};
}

template <>
OpTraits define_traits<MultiHeadAttentionBackwardData>() {
  return {.name = "multi_head_attention_backward_data",
          .doc_page = "multi_head_attention",
          .infer = infer_multi_head_attention_backward_data,
          .sample = sample_multi_head_attention_backward_data,
          .contents = multi_head_contents<MultiHeadAttentionBackwardData>,
          .flops = multi_head_flops<MultiHeadAttentionBackwardData>,
          .is_compute_bound = true};
}

template <>
OpTraits define_traits<MultiHeadAttentionBackwardWeights>() {
  return {.name = "multi_head_attention_backward_weights",
          .doc_page = "multi_head_attention",
          .infer = infer_multi_head_attention_backward_weights,
          .sample = sample_multi_head_attention_backward_weights,
          .contents = multi_head_contents<MultiHeadAttentionBackwardWeights>,
          .flops = multi_head_flops<MultiHeadAttentionBackwardWeights>,
          .is_compute_bound = true};
}

}  // namespace ashlar
