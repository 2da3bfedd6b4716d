// Definition of MoE grouped matmul.
#include "graph/ops/define.hpp"

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

// `output_rows`: rows of the tensor [1, rows, N] that rows of the grouped matmul are scattered to.
template <class Self>
Contents moe_contents(const NodeShapes& node, int slot, std::int64_t output_rows) {
  const auto& op = node.op<Self>();
  const bool gathers = op.mode == MoeMode::gather;
  switch (slot) {
    case Self::first_token_offset: {
      // Rises evenly, give or take a row.
      const std::int64_t rows = node.input(gathers ? int{Self::token_index} : int{Self::token})[1];
      const std::int64_t groups = std::max<std::int64_t>(node.input(slot)[0], 1);
      return {.kind = Contents::Kind::by_element,
              .low = 0,
              .high = static_cast<double>(rows),
              .below = 2,
              .above = 2,
              .element = [=](std::int64_t group, double random) {
                return static_cast<double>(
                    std::min(rows, group * rows / groups + (random < 0.5 ? 0 : 1)));
              }};
    }
    case Self::token_index:
      return indices_below(gathers ? node.input(Self::token)[1] : output_rows / op.top_k, 1, 1);
    case Self::token_ks: return indices_below(op.top_k, 1, 0);
    default: return {};
  }
}
Contents moe_grouped_matmul_contents(const NodeShapes& node, int slot) {
  using Self = MoeGroupedMatmul;
  return moe_contents<Self>(node, slot, node.output(Self::output)[1]);
}
Contents moe_grouped_matmul_backward_contents(const NodeShapes& node, int slot) {
  using Self = MoeGroupedMatmulBackward;
  return moe_contents<Self>(node, slot, node.input(Self::doutput)[1]);
}

// One multiplication by the weights. With scatter, the number of rows is that of the tokens.
double moe_flops(MoeMode mode, const Dims& token, const Dims& output) {
  const std::int64_t rows = mode == MoeMode::scatter ? token[1] : output[1];
  return 2 * count_of({rows, token[2]}) * static_cast<double>(output[2]);
}
double moe_grouped_matmul_flops(const NodeShapes& node) {
  using Self = MoeGroupedMatmul;
  return moe_flops(node.op<Self>().mode, node.input(Self::token), node.output(Self::output));
}
double moe_grouped_matmul_backward_flops(const NodeShapes& node) {
  using Self = MoeGroupedMatmulBackward;
  const bool has_dtoken = !node.output(Self::dtoken).empty();
  return (has_dtoken ? 2 : 1) *
         moe_flops(node.op<Self>().mode, node.input(Self::token), node.input(Self::doutput));
}

std::vector<Value> sample_moe_grouped_matmul(Graph& g, DType t) {
  using Op = MoeGroupedMatmul;
  return g
      .apply(Op{},
             {{Op::token, g.input("token", {1, 8, 16}, t)},
              {Op::weight, g.input("weight", {2, 16, 8}, t)},
              {Op::first_token_offset, g.input("offsets", {2, 1, 1}, i32)}},
             {Op::output})
      .all();
}
std::vector<Value> sample_moe_grouped_matmul_backward(Graph& g, DType t) {
  using Op = MoeGroupedMatmulBackward;
  return g
      .apply(Op{},
             {{Op::doutput, g.input("doutput", {1, 8, 8}, t)},
              {Op::token, g.input("token", {1, 8, 16}, t)},
              {Op::weight, g.input("weight", {2, 16, 8}, t)},
              {Op::first_token_offset, g.input("offsets", {2, 1, 1}, i32)}},
             {Op::dweight, Op::dtoken})
      .all();
}

void moe_gradient(GradientContext& c) {
  using Self = MoeGroupedMatmul;
  using Backward = MoeGroupedMatmulBackward;
  Backward op;
  static_cast<MoeAttributes&>(op) = c.op<Self>();
  std::vector<AnyOperand> operands = c.shared_operands(op);
  operands.push_back({Backward::doutput, c.dy()});
  std::vector<AnyWanted> wanted;
  if (c.wants(Self::token)) wanted.push_back({Backward::dtoken, c.spec(Self::token).dtype});
  const auto out = c.graph().apply_any(op, operands, wanted, {.dtype = c.spec(Self::weight).dtype});
  c.add(Self::weight, out[Backward::dweight]);
  if (!wanted.empty()) c.add(Self::token, out[Backward::dtoken]);
}

}  // namespace

template <>
OpTraits define_traits<MoeGroupedMatmul>() {
  using Self = MoeGroupedMatmul;
  return {.name = "moe_grouped_matmul",
          .doc_page = "mixture",
          .infer = infer_moe_grouped_matmul,
          .gradient = moe_gradient,
          .sample = sample_moe_grouped_matmul,
          .contents = moe_grouped_matmul_contents,
          .flops = moe_grouped_matmul_flops,
          .is_compute_bound = true,
          .arithmetic_inputs = {Self::token, Self::weight},
          .fused_inputs = {Self::token, Self::weight},
          .rereads_inputs = true,
          .dequantizes_inputs = true,
          .is_gemm_like = true};
}

template <>
OpTraits define_traits<MoeGroupedMatmulBackward>() {
  using Self = MoeGroupedMatmulBackward;
  return {.name = "moe_grouped_matmul_backward",
          .doc_page = "mixture",
          .infer = infer_moe_grouped_matmul_backward,
          .sample = sample_moe_grouped_matmul_backward,
          .contents = moe_grouped_matmul_backward_contents,
          .flops = moe_grouped_matmul_backward_flops,
          .is_compute_bound = true,
          .arithmetic_inputs = {Self::doutput, Self::token},
          .fused_inputs = {Self::doutput, Self::token},
          .rereads_inputs = true,
          .is_gemm_like = true};
}

}  // namespace ashlar
