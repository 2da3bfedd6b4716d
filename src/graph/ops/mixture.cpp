// Inference and validation of MoE grouped matmul.
#include "graph/ops/infer.hpp"

namespace ashlar {

namespace {

// The slots of the operands that both operations have.
struct Slots {
  int token, weight, first_token_offset, token_index, token_ks;
};

void require_operand(const NodeContext& node, int slot) {
  node.require_rank(slot, 3, 3);
  node.require_arithmetic(slot);
}

void require_one_matrix(const NodeContext& node, int slot) {
  require_operand(node, slot);
  if (node.input(slot).dims[0] != 1)
    node.reject(fmt::format("batch of {}", node.input_name(slot)), node.input(slot).dims[0], "1");
}

void require_given(const NodeContext& node, const MoeAttributes& op, int slot,
                   std::string_view name, bool wanted) {
  constexpr std::string_view kModes[] = {"none", "gather", "scatter"};
  const std::string_view mode = kModes[static_cast<std::size_t>(op.mode)];
  if (wanted && !node.has_input(slot))
    node.reject(name, "nothing", "a tensor [1, rows, 1] in mode {}", mode);
  if (!wanted && node.has_input(slot)) node.reject(name, "a tensor", "nothing in mode {}", mode);
}

// Checks the routing operands; returns the number of rows of the grouped matmul.
std::int64_t check_routing(const NodeContext& node, const MoeAttributes& op, const Slots& slots) {
  require_one_matrix(node, slots.token);
  const Dims& token = node.input(slots.token).dims;
  node.require_rank(slots.first_token_offset, 3, 3);
  node.require_integer(slots.first_token_offset);
  const std::int64_t groups = node.input(slots.first_token_offset).dims[0];
  node.require_dims(slots.first_token_offset, {groups, 1, 1});
  if (node.has_input(slots.weight)) {
    require_operand(node, slots.weight);
    const Dims& weight = node.input(slots.weight).dims;
    if (weight[1] != token[2])
      node.reject("k",
                  fmt::format("{} columns in token and {} rows in weight", token[2], weight[1]),
                  "equal counts");
    if (weight[0] == 0 ? groups != 0 : groups % weight[0] != 0)
      node.reject(fmt::format("dims of {}", node.input_name(slots.first_token_offset)), groups,
                  "a multiple of {}, the number of experts", weight[0]);
  }
  if (op.top_k < 1) node.reject("top_k", op.top_k, "at least 1");
  require_given(node, op, slots.token_index, "token_index", op.mode != MoeMode::none);
  require_given(node, op, slots.token_ks, "token_ks", op.mode == MoeMode::scatter);
  std::int64_t rows = token[1];
  if (op.mode == MoeMode::gather) {
    node.require_rank(slots.token_index, 3, 3);
    rows = node.input(slots.token_index).dims[1];
  }
  for (const int slot : {slots.token_index, slots.token_ks}) {
    node.require_dims(slot, {1, rows, 1});
    node.require_integer(slot);
  }
  return rows;
}

}  // namespace

void infer_moe_grouped_matmul(NodeContext& node) {
  using Self = MoeGroupedMatmul;
  const auto& op = node.op<Self>();
  const std::int64_t rows = check_routing(
      node, op,
      {Self::token, Self::weight, Self::first_token_offset, Self::token_index, Self::token_ks});
  Dims output = {1, rows, node.input(Self::weight).dims[2]};
  const Dims& given = node.output(Self::output).dims;
  // For scatter the caller chooses the number of output rows.
  if (op.mode == MoeMode::scatter && given.rank() == 3) output[1] = given[1];
  node.infer_dims(Self::output, output);
  node.infer_dtype(Self::output, node.input(Self::token).dtype);
  node.infer_strides_like(Self::output, Tensor{});
}

void infer_moe_grouped_matmul_backward(NodeContext& node) {
  using Self = MoeGroupedMatmulBackward;
  const auto& op = node.op<Self>();
  require_one_matrix(node, Self::doutput);
  for (const int slot : {Self::doutput, Self::token}) node.require_floating(slot);
  const std::int64_t rows = check_routing(
      node, op,
      {Self::token, Self::weight, Self::first_token_offset, Self::token_index, Self::token_ks});
  const Tensor& token = node.input(Self::token);
  const Dims& doutput = node.input(Self::doutput).dims;
  if (op.mode != MoeMode::scatter) node.require_dims(Self::doutput, {1, rows, doutput[2]});
  Dims dweight = {node.input(Self::first_token_offset).dims[0], token.dims[2], doutput[2]};
  if (node.has_input(Self::weight)) {
    dweight[0] = node.input(Self::weight).dims[0];
    node.require_dims(Self::weight, dweight);
  } else if (node.has_output(Self::dtoken)) {
    node.reject("weight", "nothing", "a tensor: dtoken is computed from it");
  }
  node.infer_dims(Self::dweight, dweight);
  node.infer_dtype(Self::dweight, token.dtype);
  node.infer_strides_like(Self::dweight,
                          node.has_input(Self::weight) ? node.input(Self::weight) : Tensor{});
  node.infer_dims(Self::dtoken, token.dims);
  node.infer_dtype(Self::dtoken, token.dtype);
  node.infer_strides_like(Self::dtoken, token);
}

}  // namespace ashlar
