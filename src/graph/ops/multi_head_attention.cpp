// Inference and validation of multi-head attention.
#include "graph/multi_head_shapes.hpp"
#include "graph/ops/infer.hpp"

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
    return node.schema().inputs[static_cast<std::size_t>(slot)].name;
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

}  // namespace

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

}  // namespace ashlar
