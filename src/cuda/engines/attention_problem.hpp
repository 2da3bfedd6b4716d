// The attention of a region as its engines see it: extents, operands, masks, options.
#pragma once

#include <string>

#include "cuda/launch/arguments.hpp"
#include "plan/region.hpp"

namespace ashlar::cuda {

// What the engines of both directions read.
struct AttentionShape {
  const AttentionAttributes& op;
  std::int64_t batch, heads, key_heads, value_heads;
  std::int64_t queries, keys;  // Sq; Skv, of paged attention max_seq_len_kv
  std::int64_t head_dim, value_dim;
  // As loaded: [B, heads, S, D], or the container [pages, heads, page, D]. Absent where a prologue
  // computes the operand.
  View q, k, v;
  // Plain loads or computed; empty where absent.
  const PointwiseProgram &seq_len_q, &seq_len_kv, &scale_tensor;

  bool has_bounds() const { return op.left_bound || op.right_bound; }
  bool has_lengths() const;
  bool has_scale_tensor() const { return !scale_tensor.steps.empty(); }
  // Bounds as 32-bit kernels use them: at the extents, where they mask nothing.
  std::int64_t left_bound() const;
  std::int64_t right_bound() const;

  // Pairs of a tile of `block_m` queries and a block of `block_n` keys that a kernel visits, over
  // all batches and heads, with lengths at their extents.
  double visited_blocks(std::int64_t block_m, std::int64_t block_n) const;

 protected:
  // `region` must outlive the shape; Op: AttentionForward or AttentionBackward, its anchor.
  template <class Op>
  AttentionShape(const Region& region, const Op& op);
};

struct AttentionProblem : AttentionShape {
  // The region's anchor is an AttentionForward.
  explicit AttentionProblem(const Region& region);

  bool has(AttentionForward::In slot) const;
  bool has_result(AttentionForward::Out slot) const;
  const PointwiseProgram& program(AttentionForward::In slot) const;  // empty where absent
  View result(AttentionForward::Out slot) const;
  const PointwiseProgram& epilogue() const { return region_.epilogue; }

  bool is_paged() const;
  // Whether scores are more than scale * q k^T: soft cap, program, bias or ALiBi.
  bool has_score_options() const;
  bool has_fp8_scales() const;

 private:
  const Region& region_;
};

struct AttentionBackwardProblem : AttentionShape {
  // The region's anchor is an AttentionBackward.
  explicit AttentionBackwardProblem(const Region& region);

  bool has(AttentionBackward::In slot) const;
  View loaded(AttentionBackward::In slot) const;  // absent where a prologue computes it
  View result(AttentionBackward::Out slot) const;
  const PointwiseProgram& epilogue() const { return region_.epilogue; }  // stores dq

 private:
  const Region& region_;
};

// Prints a score program as `R NAME(const R (&values)[10])`.
std::string print_score_program(const std::string& name, const ScoreProgram& program);

// Prints what lib/attention_mask.cuh reads: constants, arguments and lengths.
std::string print_attention_mask(const AttentionShape& problem, const Graph& graph,
                                 Arguments& arguments);

// Prints `float score_scale(const Args& args)`: the attribute, or the value of the tensor.
std::string print_score_scale(const AttentionShape& problem, const Graph& graph,
                              Arguments& arguments);

}  // namespace ashlar::cuda
