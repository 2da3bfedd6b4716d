#include <cmath>

#include "graph/ops/infer.hpp"

namespace ashlar {

namespace {

struct AttentionShape {
  Dims o, stats, scores;
};

// Checks everything forward and backward share and fills in the scale.
template <class Attention>
AttentionShape check_common(NodeContext& node, Attention& op) {
  for (int slot : {Attention::q, Attention::k, Attention::v}) {
    node.require_rank(slot, 4, 4);
    node.require_floating(slot);
  }
  const Dims& q = node.input(Attention::q).dims;
  const Dims& k = node.input(Attention::k).dims;
  const Dims& v = node.input(Attention::v).dims;
  if (k[0] != q[0] || v[0] != q[0])
    node.reject("batch of k and v", fmt::format("{} and {}", k[0], v[0]), "{}, that of q", q[0]);
  if (k[3] != q[3]) node.reject("head dim of k", k[3], "{}, that of q", q[3]);
  if (k[2] != v[2]) node.reject("sequence length of v", v[2], "{}, that of k", k[2]);
  for (int slot : {Attention::k, Attention::v}) {
    const std::int64_t heads = node.input(slot).dims[1];
    if (heads < 1 || q[1] % heads != 0)
      node.reject(fmt::format("heads of {}", node.input_name(slot)), heads,
                  "a divisor of q's {} heads", q[1]);
  }

  const AttentionShape shape{
      {q[0], q[1], q[2], v[3]}, {q[0], q[1], q[2], 1}, {q[0], q[1], q[2], k[2]}};
  node.require_broadcastable(Attention::bias, shape.scores);
  node.require_floating(Attention::bias);
  for (int slot : {Attention::seq_len_q, Attention::seq_len_kv}) {
    node.require_dims(slot, {q[0], 1, 1, 1});
    node.require_integer(slot);
  }
  node.require_one_element(Attention::scale_tensor);
  node.require_floating(Attention::scale_tensor);
  if (!op.scale && !node.has_input(Attention::scale_tensor))
    op.scale = q[3] == 0 ? 1.0 : 1.0 / std::sqrt(static_cast<double>(q[3]));
  if (op.left_bound && *op.left_bound < 1)
    node.reject("left_bound", *op.left_bound, "at least 1 (1 sees only the diagonal)");
  if (op.right_bound && *op.right_bound < 0)
    node.reject("right_bound", *op.right_bound, "at least 0 (0 is causal)");

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
  for (int slot : {Attention::dropout_seed, Attention::dropout_offset}) {
    node.require_one_element(slot);
    node.require_integer(slot);
  }
  node.require_dims(Attention::dropout_mask, shape.scores);
  return shape;
}

}  // namespace

void infer_attention_forward(NodeContext& node) {
  auto& op = node.op<AttentionForward>();
  const AttentionShape shape = check_common(node, op);
  const Tensor& q = node.input(AttentionForward::q);
  node.infer_dims(AttentionForward::o, shape.o);
  node.infer_dtype(AttentionForward::o, q.dtype);
  node.infer_strides_like(AttentionForward::o, q);
  node.infer_dims(AttentionForward::stats, shape.stats);
  node.infer_dtype(AttentionForward::stats, q.dtype == f64 ? f64 : f32);
  node.infer_strides_like(AttentionForward::stats, Tensor{});
}

void infer_attention_backward(NodeContext& node) {
  auto& op = node.op<AttentionBackward>();
  const AttentionShape shape = check_common(node, op);
  for (int slot : {AttentionBackward::o, AttentionBackward::d_o}) {
    node.require_dims(slot, shape.o);
    node.require_floating(slot);
  }
  node.require_dims(AttentionBackward::stats, shape.stats);
  node.require_floating(AttentionBackward::stats);
  const auto infer_gradient = [&](int output, int of) {
    const Tensor& tensor = node.input(of);
    node.infer_dims(output, tensor.dims);
    node.infer_dtype(output, tensor.dtype);
    node.infer_strides_like(output, tensor);
  };
  infer_gradient(AttentionBackward::dq, AttentionBackward::q);
  infer_gradient(AttentionBackward::dk, AttentionBackward::k);
  infer_gradient(AttentionBackward::dv, AttentionBackward::v);
  if (!node.has_output(AttentionBackward::dbias)) return;
  if (!node.has_input(AttentionBackward::bias))
    node.reject("output dbias", "a tensor", "none without an input bias");
  infer_gradient(AttentionBackward::dbias, AttentionBackward::bias);
}

}  // namespace ashlar
