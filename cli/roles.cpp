#include "roles.hpp"

#include <cmath>

namespace ashlar::cli {

namespace {

using Kind = Role::Kind;
constexpr double kLargestSeed = 1 << 30;
constexpr double kLargestInteger = 4;  // plain integer values: sums of products stay exact
constexpr Role kPositive{Kind::values, 0.25, 2.0};
constexpr Role kSeed{Kind::whole, 0, kLargestSeed};

Role lengths_up_to(std::int64_t limit) {
  return {Kind::whole, limit > 0 ? 1.0 : 0.0, static_cast<double>(limit)};
}

bool is_plain(const Role& role) {
  return role.kind == Kind::values && role.low == Role{}.low && role.high == Role{}.high;
}

class RoleFinder {
 public:
  RoleFinder(const Graph& graph, const Node& node, int slot)
      : graph_(graph), node_(node), slot_(slot) {}

  Role operator()(const AttentionForward& op) const {
    using Op = AttentionForward;
    if (slot_ == Op::seq_len_q) return lengths_up_to(dims(Op::q)[2]);
    if (slot_ == Op::seq_len_kv) return lengths_up_to(dims(Op::k)[2]);
    if (slot_ == Op::dropout_seed || slot_ == Op::dropout_offset) return kSeed;
    if (slot_ == Op::dropout_mask) return {Kind::keep_mask, 0, 1 - op.dropout};
    if (slot_ == Op::scale_tensor) return softmax_scale(Op::q);
    return {};
  }
  Role operator()(const AttentionBackward& op) const {
    using Op = AttentionBackward;
    if (slot_ == Op::seq_len_q) return lengths_up_to(dims(Op::q)[2]);
    if (slot_ == Op::seq_len_kv) return lengths_up_to(dims(Op::k)[2]);
    if (slot_ == Op::dropout_seed || slot_ == Op::dropout_offset) return kSeed;
    if (slot_ == Op::dropout_mask) return {Kind::keep_mask, 0, 1 - op.dropout};
    if (slot_ == Op::scale_tensor) return softmax_scale(Op::q);
    if (slot_ ==
        Op::stats) {  // log of a sum of about one per key, so that the weights sum to about 1
      const double keys = std::log(static_cast<double>(std::max<std::int64_t>(dims(Op::k)[2], 1)));
      return {Kind::values, keys, keys + 1};
    }
    return {};
  }
  Role operator()(const MultiHeadAttentionForward&) const {
    return multi_head<MultiHeadAttentionForward>();
  }
  Role operator()(const MultiHeadAttentionBackwardData&) const {
    return multi_head<MultiHeadAttentionBackwardData>();
  }
  Role operator()(const MultiHeadAttentionBackwardWeights&) const {
    return multi_head<MultiHeadAttentionBackwardWeights>();
  }
  Role operator()(const Matmul&) const {
    const Dims& a = dims(Matmul::a);
    const Dims& b = dims(Matmul::b);
    if (slot_ == Matmul::m_override) return lengths_up_to(a[a.rank() - 2]);
    if (slot_ == Matmul::k_override) return lengths_up_to(a[a.rank() - 1]);
    if (slot_ == Matmul::n_override) return lengths_up_to(b[b.rank() - 1]);
    return {};
  }
  Role operator()(const NormForward& op) const {
    if (slot_ == NormForward::running_var || slot_ == NormForward::inv_variance) return kPositive;
    if (slot_ == NormForward::epsilon_tensor) return {Kind::fixed, op.epsilon, op.epsilon};
    return {};
  }
  Role operator()(const NormBackward& op) const {
    if (slot_ == NormBackward::inv_variance) return kPositive;
    if (slot_ == NormBackward::epsilon_tensor) return {Kind::fixed, op.epsilon, op.epsilon};
    return {};
  }
  Role operator()(const ResampleBackward&) const {
    if (slot_ == ResampleBackward::index) return {Kind::window_index};
    return {};
  }
  Role operator()(const SoftmaxBackward& op) const {
    if (slot_ != SoftmaxBackward::y) return {};
    return op.log ? Role{Kind::values, -4, -0.01} : Role{Kind::values, 0, 1};
  }
  Role operator()(const Rng&) const { return kSeed; }
  Role operator()(const Pointwise& op) const {
    switch (op.mode) {
      case PointwiseMode::sqrt:
      case PointwiseMode::rsqrt:
      case PointwiseMode::log:
      case PointwiseMode::reciprocal:
      case PointwiseMode::pow: return slot_ == Pointwise::x ? kPositive : Role{};
      case PointwiseMode::div:
      case PointwiseMode::mod: return slot_ == Pointwise::b ? kPositive : Role{};
      default: return {};
    }
  }
  template <class Op>
  Role operator()(const Op&) const {
    return {};
  }

 private:
  const Dims& dims(int slot) const {
    return graph_.tensor(node_.inputs[static_cast<std::size_t>(slot)]).dims;
  }
  template <class Op>
  Role multi_head() const {
    const std::int64_t keys = dims(Op::k)[2];
    if (slot_ == Op::seq_len_q) return lengths_up_to(dims(Op::q)[2]);
    if (slot_ == Op::seq_len_kv) return lengths_up_to(keys);
    // The first half may begin a window, the second half end one: every step sees something.
    if (slot_ == Op::window_low) return {Kind::whole, 0, static_cast<double>(keys / 2)};
    if (slot_ == Op::window_high)
      return {Kind::whole, static_cast<double>(keys / 2 + 1), static_cast<double>(keys)};
    for (int seed :
         {Op::dropout_seed, Op::dropout_offset, Op::post_dropout_seed, Op::post_dropout_offset})
      if (slot_ == seed) return kSeed;
    return {};
  }
  Role softmax_scale(int q) const {
    const double scale = 1 / std::sqrt(static_cast<double>(dims(q)[3]));
    return {Kind::fixed, scale, scale};
  }

  const Graph& graph_;
  const Node& node_;
  int slot_;
};

Role plain_role(DType dtype) {
  switch (dtype) {
    case DType::boolean: return {Kind::keep_mask, 0, 0.5};
    case DType::u8: return {Kind::whole, 0, 2 * kLargestInteger};
    default:
      if (is_integer(dtype)) return {Kind::whole, -kLargestInteger, kLargestInteger};
      return {};
  }
}

}  // namespace

Role role_of(const Graph& graph, TensorId id) {
  for (const Tensor& tensor : graph.tensors())
    if (tensor.ragged_offset == id) return {Kind::row_offsets};
  for (const Node& node : graph.nodes()) {
    for (std::size_t slot = 0; slot < node.inputs.size(); ++slot) {
      if (node.inputs[slot] != id) continue;
      Role role = std::visit(RoleFinder(graph, node, static_cast<int>(slot)), node.op);
      role.node = &node;
      if (!is_plain(role)) return role;
    }
  }
  return plain_role(graph.tensor(id).dtype);
}

}  // namespace ashlar::cli
