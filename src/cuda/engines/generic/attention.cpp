// Scaled dot-product attention with every option: one CTA per row of a result.
#include "cuda/engines/attention_problem.hpp"
#include "cuda/engines/generic/operations.hpp"
#include "cuda/text/program_text.hpp"
#include "graph/score_program.hpp"

namespace ashlar::cuda {

namespace {

bool is_fp8(DType dtype) { return dtype == DType::e4m3 || dtype == DType::e5m2; }

// Type of a GEMM operand: fp8 operands are rounded, others stay f32.
std::string operand_typedef(const std::string& name, DType dtype) {
  return fmt::format("typedef {} {};\n", to_string(is_fp8(dtype) ? dtype : f32), name);
}

// Shared by forward and backward. Returns the number of query rows.
template <class Attention>
std::int64_t add_attention(const Attention& op, GenericKernel& kernel) {
  const View& q = kernel.in(Attention::q);
  const Dims& k = kernel.in(Attention::k).dims;
  const std::int64_t rows = q.dims[0] * q.dims[1] * q.dims[2];
  kernel.file("attention");
  kernel.constant("kBottomRight", op.alignment == MaskAlignment::bottom_right);
  kernel.constant("kHasLeftBound", op.left_bound.has_value());
  kernel.constant("kHasRightBound", op.right_bound.has_value());
  kernel.constant("kHasSoftCap", op.soft_cap.has_value());
  kernel.constant("kHasModifier", !op.score_modifier.empty());
  kernel.constant("kAlibi", op.alibi);
  kernel.constant("kDropout", op.dropout > 0.0);
  kernel.text(operand_typedef("Factor", q.dtype));
  kernel.text(print_score_program("modified_score", op.score_modifier));
  kernel.number("batch", q.dims[0]);
  kernel.number("heads", q.dims[1]);
  kernel.number("queries", q.dims[2]);
  kernel.number("keys", op.max_seq_len_kv.value_or(k[2]));
  kernel.number("rows", rows);
  kernel.number("left_bound", op.left_bound.value_or(0));
  kernel.number("right_bound", op.right_bound.value_or(0));
  kernel.number("block_rows", op.block_rows);
  kernel.number("block_columns", op.block_columns);
  std::int64_t power = 1;
  while (power <= q.dims[1] / 2) power *= 2;
  kernel.number("alibi_power", power);
  kernel.real("scale", op.scale.value_or(1.0));
  kernel.real("soft_cap", op.soft_cap.value_or(1.0));
  kernel.real("keep_probability", 1.0 - op.dropout);
  return rows;
}

// Workspace for one maximum per CTA, which the last pass reduces.
void add_largest(const std::string& name, bool wanted, std::int64_t blocks, GenericKernel& kernel) {
  kernel.scratch(name, wanted ? blocks * kernel.register_bytes() : 0);
}

}  // namespace

void describe(const AttentionForward& op, GenericKernel& kernel) {
  using Forward = AttentionForward;
  const std::int64_t rows = add_attention(op, kernel);
  kernel.file("attention_forward");
  kernel.constant("kDividesFirst", is_fp8(kernel.in(Forward::q).dtype));
  add_largest("largest_s", kernel.has_out(Forward::amax_s), rows, kernel);
  add_largest("largest_o", kernel.has_out(Forward::amax_o), rows, kernel);
  kernel.block_pass(rows);
  kernel.block_pass(kernel.has_out(Forward::amax_s) || kernel.has_out(Forward::amax_o) ? 1 : 0);
}

void describe(const AttentionBackward& op, GenericKernel& kernel) {
  using Backward = AttentionBackward;
  const std::int64_t rows = add_attention(op, kernel);
  const DType gradient = kernel.in(Backward::d_o).dtype;
  kernel.file("attention_backward");
  kernel.constant("kScalesFirst", is_fp8(gradient));
  kernel.text(operand_typedef("GradientOperand",
                              is_fp8(gradient) ? gradient : kernel.in(Backward::q).dtype));
  const bool given = op.score_modifier.empty() || !op.score_modifier_gradient.empty();
  kernel.text(print_score_program(
      "modifier_gradient", given ? op.score_modifier_gradient : gradient_of(op.score_modifier)));

  const auto rows_of = [](const Dims& dims) { return dims[0] * dims[1] * dims[2]; };
  const std::int64_t k_rows = rows_of(kernel.in(Backward::k).dims);
  const std::int64_t v_rows = rows_of(kernel.in(Backward::v).dims);
  // dbias is summed over its broadcast axes.
  const bool dbias = kernel.has_out(Backward::dbias);
  const Dims& q = kernel.in(Backward::q).dims;
  Dims reach = {q[0], q[1], q[2], op.max_seq_len_kv.value_or(kernel.in(Backward::k).dims[2])};
  if (dbias)
    for (int axis = 0; axis < reach.rank(); ++axis)
      if (kernel.out(Backward::dbias).dims[axis] != 1) reach[axis] = 1;
  kernel.numbers("bias_reach", reach);
  kernel.number("bias_reach_size", element_count(reach));
  kernel.scratch("delta", rows * kernel.register_bytes());
  const auto has = [&](int slot) { return kernel.has_out(slot); };
  add_largest("largest_dq", has(Backward::amax_dq), rows, kernel);
  add_largest("largest_dk", has(Backward::amax_dk), k_rows, kernel);
  add_largest("largest_dv", has(Backward::amax_dv), v_rows, kernel);
  add_largest("largest_dp", has(Backward::amax_dp), rows, kernel);

  kernel.block_pass(rows);    // delta
  kernel.block_pass(rows);    // dq
  kernel.block_pass(k_rows);  // dk
  kernel.block_pass(v_rows);  // dv
  kernel.block_pass(dbias ? element_count(kernel.out(Backward::dbias).dims) : 0);
  kernel.block_pass(has(Backward::dsink) ? q[1] : 0);
  const bool any_largest = has(Backward::amax_dq) || has(Backward::amax_dk) ||
                           has(Backward::amax_dv) || has(Backward::amax_dp);
  kernel.block_pass(any_largest ? 1 : 0);
}

}  // namespace ashlar::cuda
