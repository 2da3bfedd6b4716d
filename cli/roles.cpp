#include "roles.hpp"

#include <cmath>

namespace ashlar::cli {

namespace {

using Kind = Role::Kind;
constexpr double kLargestSeed = 1 << 30;
constexpr double kLargestInteger = 4;  // plain integer values: sums of products stay exact
constexpr double kCount = 64;          // elements behind sums that come from nowhere
constexpr Role kPositive{Kind::values, 0.25, 2.0};
constexpr double kWeightScale = 256;  // softmax weights fill the range of fp8 types
constexpr Role kSeed{Kind::whole, 0, kLargestSeed};

Role lengths_up_to(std::int64_t limit) {
  return {Kind::whole, limit > 0 ? 1.0 : 0.0, static_cast<double>(limit)};
}

Role whole_below(std::int64_t limit) {
  return {Kind::whole, 0.0, static_cast<double>(std::max<std::int64_t>(limit - 1, 0))};
}

bool is_plain(const Role& role) {
  return role.kind == Kind::values && role.low == Role{}.low && role.high == Role{}.high;
}

class RoleFinder {
 public:
  RoleFinder(const Graph& graph, const Node& node, int slot)
      : graph_(graph), node_(node), slot_(slot) {}

  Role operator()(const AttentionForward& op) const { return attention_role(op); }
  Role operator()(const AttentionBackward& op) const {
    // Log of a sum of about one per key, so that the weights sum to about 1.
    if (slot_ == AttentionBackward::stats) {
      const double keys = std::log(static_cast<double>(std::max<std::int64_t>(key_count(op), 1)));
      return {Kind::values, keys, keys + 1};
    }
    return attention_role(op);
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
  Role operator()(const MoeGroupedMatmul& op) const {
    using Op = MoeGroupedMatmul;
    const std::int64_t outputs =
        graph_.tensor(node_.outputs[static_cast<std::size_t>(Op::output)]).dims[1];
    return mixture<Op>(op, outputs);
  }
  Role operator()(const MoeGroupedMatmulBackward& op) const {
    using Op = MoeGroupedMatmulBackward;
    return mixture<Op>(op, dims(Op::doutput)[1]);
  }
  Role operator()(const PagedCacheLoad& op) const {
    using Op = PagedCacheLoad;
    if (slot_ == Op::page_table) return whole_below(dims(Op::container)[0]);
    if (slot_ == Op::sequence)
      return lengths_up_to(graph_.tensor(node_.outputs[0]).dims[op.transposed ? 3 : 2]);
    return {};
  }
  Role operator()(const ExpandBandMatrix&) const { return band(ExpandBandMatrix::kv_token_offset); }
  Role operator()(const ContractBandMatrix&) const {
    return band(ContractBandMatrix::kv_token_offset);
  }
  Role operator()(const DropoutForward&) const {
    return slot_ == DropoutForward::x ? Role{} : kSeed;
  }
  Role operator()(const DropoutBackward& op) const {
    if (slot_ == DropoutBackward::mask) return {Kind::keep_mask, 0, 1 - op.probability};
    return slot_ == DropoutBackward::dy ? Role{} : kSeed;
  }
  Role operator()(const NormForward& op) const {
    if (slot_ == NormForward::running_var || slot_ == NormForward::inv_variance) return kPositive;
    if (slot_ == NormForward::epsilon_tensor) return {Kind::fixed, op.epsilon, op.epsilon};
    if (slot_ == NormForward::momentum_tensor) return {Kind::fixed, op.momentum, op.momentum};
    return {};
  }
  Role operator()(const BnFinalize& op) const {
    using Op = BnFinalize;
    if (slot_ == Op::running_var) return kPositive;
    if (slot_ == Op::sq_sum) return {Kind::values, 1, 2};  // of sums in [-1, 1]: variances above 0
    if (slot_ == Op::epsilon_tensor) return {Kind::fixed, op.epsilon, op.epsilon};
    if (slot_ == Op::momentum_tensor) return {Kind::fixed, op.momentum, op.momentum};
    if (slot_ == Op::count_tensor) return {Kind::fixed, kCount, kCount};
    return {};
  }
  Role operator()(const BnBackwardWeights&) const {
    return slot_ == BnBackwardWeights::inv_variance ? kPositive : Role{};
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
  Role operator()(const CtcLoss& op) const {
    const Dims& x = dims(CtcLoss::x);
    const Dims& labels = dims(CtcLoss::labels);
    if (slot_ == CtcLoss::x && op.input == CtcInput::probabilities) return {Kind::values, 0.05, 1};
    if (slot_ == CtcLoss::labels)  // any class but the blank, when it is the first
      return {Kind::whole, op.blank == 0 && x[2] > 1 ? 1.0 : 0.0, static_cast<double>(x[2] - 1)};
    if (slot_ == CtcLoss::label_lengths)
      return lengths_up_to(labels.rank() == 2 ? labels[1]
                                              : labels[0] / std::max<std::int64_t>(x[1], 1));
    if (slot_ == CtcLoss::input_lengths) {
      const auto times = static_cast<double>(x[0]);
      return {Kind::whole, std::ceil(times / 2), times};
    }
    return {};
  }
  Role operator()(const RnnForward& op) const { return recurrent(op); }
  Role operator()(const RnnBackwardData& op) const { return recurrent(op); }
  Role operator()(const RnnBackwardWeights& op) const { return recurrent(op); }
  Role operator()(const Rng&) const { return kSeed; }
  Role operator()(const BlockScaleDequantize&) const {
    return slot_ == BlockScaleDequantize::scale ? kPositive : Role{};
  }
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
  template <class Op>
  Role mixture(const MoeAttributes& op, std::int64_t output_rows) const {
    const bool gather = op.mode == MoeMode::gather;
    if (slot_ == Op::first_token_offset) {
      const std::int64_t rows = gather ? dims(Op::token_index)[1] : dims(Op::token)[1];
      return {Kind::rising, 0.0, static_cast<double>(rows)};
    }
    if (slot_ == Op::token_index)
      return whole_below(gather ? dims(Op::token)[1] : output_rows / op.top_k);
    if (slot_ == Op::token_ks) return whole_below(op.top_k);
    return {};
  }
  Role band(int offset_slot) const {
    return slot_ == offset_slot ? Role{Kind::whole, 0, kLargestInteger} : Role{};
  }
  const Dims& dims(int slot) const {
    return graph_.tensor(node_.inputs[static_cast<std::size_t>(slot)]).dims;
  }
  template <class Op>
  Role recurrent(const Op& op) const {
    if (slot_ == Op::dropout_seed || slot_ == Op::dropout_offset) return kSeed;
    if (slot_ != Op::seq_lengths) return {};
    // Packed rows are shared by the sequences.
    const std::int64_t sequences = std::max<std::int64_t>(dims(Op::seq_lengths)[0], 1);
    return lengths_up_to(op.layout == RnnLayout::packed ? dims(0)[0] / sequences : dims(0)[0]);
  }
  template <class Op>
  std::int64_t key_count(const Op& op) const {
    return op.max_seq_len_kv.value_or(dims(Op::k)[2]);
  }
  template <class Op>
  Role attention_role(const Op& op) const {
    switch (slot_) {
      case Op::seq_len_q: return lengths_up_to(dims(Op::q)[2]);
      case Op::seq_len_kv: return lengths_up_to(key_count(op));
      case Op::dropout_seed:
      case Op::dropout_offset: return kSeed;
      case Op::dropout_mask: return {Kind::keep_mask, 0, 1 - op.dropout};
      case Op::scale_tensor: return softmax_scale(Op::q);
      case Op::page_table_k: return page_numbers(dims(Op::k));
      case Op::page_table_v: return page_numbers(dims(Op::v));
      case Op::block_mask: return {Kind::keep_mask, 0, 0.75};
      case Op::scale_s: return {Kind::fixed, kWeightScale, kWeightScale};
      case Op::descale_s: return {Kind::fixed, 1 / kWeightScale, 1 / kWeightScale};
      default: return slot_ >= Op::descale_q ? kPositive : Role{};
    }
  }
  static Role page_numbers(const Dims& container) {
    return {Kind::whole, 0, static_cast<double>(std::max<std::int64_t>(container[0] - 1, 0))};
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
    case DType::u8:
    case DType::u32:
    case DType::u4: return {Kind::whole, 0, 2 * kLargestInteger};
    case DType::e8m0: return kPositive;
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
