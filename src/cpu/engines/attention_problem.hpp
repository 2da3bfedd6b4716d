// What attention forward and backward share: shapes, masks, dropout, and the scores of a tile of
// queries against a tile of keys.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/checked.hpp"
#include "base/dropout.hpp"
#include "cpu/guarded_rows.hpp"
#include "cpu/integer_operand.hpp"
#include "cpu/kernels/tile_product.hpp"
#include "plan/engine.hpp"

namespace ashlar::cpu {

inline constexpr std::int64_t kKeyTile = 128;  // columns of scores worked on at once

struct AttentionShape {
  std::int64_t batch, heads, k_heads, v_heads, queries, keys, head_dim, value_dim;

  explicit AttentionShape(const Anchor& anchor) {
    const Dims& q = anchor.inputs[AttentionForward::q].dims;
    const Dims& k = anchor.inputs[AttentionForward::k].dims;
    const Dims& v = anchor.inputs[AttentionForward::v].dims;
    batch = q[0], heads = q[1], queries = q[2], head_dim = q[3];
    k_heads = k[1], v_heads = v[1], keys = k[2], value_dim = v[3];
  }
  std::int64_t key_tiles() const { return (keys + kKeyTile - 1) / kKeyTile; }
  std::int64_t k_head_of(std::int64_t head) const { return head / (heads / k_heads); }
  std::int64_t v_head_of(std::int64_t head) const { return head / (heads / v_heads); }
};

// The first option of the region that tiles do not know, or nothing.
template <class Attention>
const char* unknown_option(const Region& region) {
  const Attention& op = *region.anchor_as<Attention>();
  const auto& inputs = region.anchor->inputs;
  for (std::size_t slot = Attention::page_table_k; slot < inputs.size(); ++slot)
    if (inputs[slot].present()) return "pages, sinks, block masks, score inputs or fp8 scales";
  const auto& outputs = region.anchor->outputs;
  constexpr bool forward = std::is_same_v<Attention, AttentionForward>;
  for (std::size_t slot = forward ? 2 : 4; slot < outputs.size(); ++slot)
    if (outputs[slot].present()) return "a result besides the usual ones";
  if (op.alibi || op.soft_cap || !op.score_modifier.empty()) return "a modified score";
  return nullptr;
}

// Half-open range of columns.
struct Columns {
  std::int64_t begin = 0, end = 0;
  bool empty() const { return begin >= end; }
  Columns within(Columns other) const {
    return {std::max(begin, other.begin), std::min(end, other.end)};
  }
};

// Attention is AttentionForward or AttentionBackward: their operands have the same names, not the
// same numbers.
template <class T, class Attention>
class AttentionProblem {
 public:
  AttentionProblem(const Graph& graph, const Region& region)
      : op_(*region.anchor_as<Attention>()),
        shape_(*region.anchor),
        bias_(input_program(region, Attention::bias),
              {shape_.batch, shape_.heads, shape_.queries, shape_.keys}, 3),
        mask_(input_program(region, Attention::dropout_mask), 3, graph),
        query_lengths_(input_program(region, Attention::seq_len_q)),
        key_lengths_(input_program(region, Attention::seq_len_kv)),
        seed_(input_program(region, Attention::dropout_seed)),
        offset_(input_program(region, Attention::dropout_offset)) {
    const PointwiseProgram& scale = input_program(region, Attention::scale_tensor);
    has_scale_ = !scale.empty();
    if (has_scale_) scale_ = RowProgram<T>(scale, scale.space.rank() - 1);
  }

  const AttentionShape& shape() const { return shape_; }

  class Bound {
   public:
    Bound(const AttentionProblem& problem, const KernelContext& run_context)
        : problem_(&problem),
          context_(&run_context),
          bias_(problem.bias_.bind(run_context)),
          mask_(problem.mask_.bind(run_context)),
          scale_(load_one(problem.scale_, problem.has_scale_, run_context,
                          static_cast<T>(problem.op_.scale.value_or(1.0)))),
          keep_factor_(static_cast<T>(1.0 / (1.0 - problem.op_.dropout))),
          seed_(static_cast<std::uint64_t>(problem.seed_.load(run_context, {}, 0))),
          offset_(static_cast<std::uint64_t>(problem.offset_.load(run_context, {}, 0))) {}

    T scale() const { return scale_; }
    bool drops() const { return problem_->op_.dropout > 0.0; }

    // The lengths and mask of one batch.
    struct Batch {
      std::int64_t queries, keys, shift;
    };
    Batch batch(std::int64_t b) const {
      const AttentionShape& shape = problem_->shape_;
      const Coords at = {b};
      const std::int64_t rows = std::clamp<std::int64_t>(
          problem_->query_lengths_.load(*context_, at, shape.queries), 0, shape.queries);
      const std::int64_t all = std::clamp<std::int64_t>(
          problem_->key_lengths_.load(*context_, at, shape.keys), 0, shape.keys);
      return {rows, all, problem_->op_.alignment == MaskAlignment::bottom_right ? all - rows : 0};
    }
    // The columns that row i sees.
    Columns columns(const Batch& batch, std::int64_t i) const {
      if (i >= batch.queries) return {};
      const auto& op = problem_->op_;
      const std::int64_t diagonal = i + batch.shift;
      Columns seen{0, batch.keys};
      // Compared first, so that the sums cannot overflow.
      if (op.left_bound && *op.left_bound <= diagonal) seen.begin = diagonal - *op.left_bound + 1;
      if (op.right_bound && *op.right_bound < batch.keys - diagonal)
        seen.end = diagonal + *op.right_bound + 1;
      return seen;
    }
    // The columns seen by any of the rows [first, first + count).
    Columns columns(const Batch& batch, std::int64_t first, std::int64_t count) const {
      Columns all{batch.keys, 0};
      for (std::int64_t i = first; i < first + count; ++i) {
        const Columns seen = columns(batch, i);
        if (!seen.empty()) all = {std::min(all.begin, seen.begin), std::max(all.end, seen.end)};
      }
      return all;
    }

    // Turns products q k into scores: scale * product + bias, over `seen` of a row that starts at
    // column `first`.
    void finish_scores(const RowOps<T>& ops, std::int64_t b, std::int64_t h, std::int64_t i,
                       Columns seen, std::int64_t first, T* row) const {
      T* scores = row + (seen.begin - first);
      const std::int64_t count = seen.end - seen.begin;
      ops.multiply(scores, {&scale_, false}, count, scores);
      if (!bias_.present()) return;
      static constexpr T kOne = 1, kZero = 0;
      alignas(64) T bias_row[kKeyTile];
      const RowArg<T> bias = bias_.load({b, h, i, seen.begin}, count, bias_row, &kZero);
      ops.normalise(scores, {&kZero, false}, {&kOne, false}, {&kOne, false}, bias, count, scores);
    }

    // Factors of dropout for columns `seen` of a row: 0, or 1 / (1 - probability).
    void dropout_factors(std::int64_t b, std::int64_t h, std::int64_t i, Columns seen,
                         T* factors) const {
      const std::int64_t count = seen.end - seen.begin;
      if (mask_.present()) {
        mask_.load({b, h, i, seen.begin}, count, factors);
        for (std::int64_t j = 0; j < count; ++j)
          factors[j] = factors[j] != T{0} ? keep_factor_ : T{0};
        return;
      }
      const AttentionShape& shape = problem_->shape_;
      const std::int64_t position =
          ((b * shape.heads + h) * shape.queries + i) * shape.keys + seen.begin;
      for (std::int64_t j = 0; j < count; ++j) {
        const auto index = static_cast<std::uint64_t>(position + j);
        factors[j] =
            dropout_keeps(seed_, offset_, index, problem_->op_.dropout) ? keep_factor_ : T{0};
      }
    }

   private:
    const AttentionProblem* problem_;
    const KernelContext* context_;
    typename Operand<T>::Bound bias_;
    typename GuardedRows<T>::Bound mask_;
    T scale_, keep_factor_;
    std::uint64_t seed_, offset_;
  };

 private:
  Attention op_;
  AttentionShape shape_;
  Operand<T> bias_;
  GuardedRows<T> mask_;
  IntegerOperand query_lengths_, key_lengths_, seed_, offset_;
  bool has_scale_ = false;
  RowProgram<T> scale_;
};

// Loads `count` rows [b, head, first + r, :] to destination[r * row_length], zero in the padding.
// Rows from `length` on are not read and become zero: a weight of zero does not stop a NaN there.
template <class T>
void load_rows(const typename GuardedRows<T>::Bound& rows, std::int64_t b, std::int64_t head,
               std::int64_t first, std::int64_t count, std::int64_t length, std::int64_t width,
               std::int64_t row_length, T* destination) {
  for (std::int64_t r = 0; r < count; ++r) {
    T* row = destination + r * row_length;
    const std::int64_t read = first + r < length ? width : 0;
    if (read > 0) rows.load({b, head, first + r, 0}, read, row);
    std::fill(row + read, row + row_length, T{0});
  }
}

// destination[d * kKeyTile + r] = source[r * row_length + d]; columns past `count` become 0.
template <class T>
void transpose_tile(const T* source, std::int64_t row_length, std::int64_t count,
                    std::int64_t width, T* destination) {
  constexpr std::int64_t kBlock = 16;  // a cache line of either side
  for (std::int64_t r0 = 0; r0 < kKeyTile; r0 += kBlock)
    for (std::int64_t d = 0; d < width; ++d)
      for (std::int64_t r = r0; r < r0 + kBlock; ++r)
        destination[d * kKeyTile + r] = r < count ? source[r * row_length + d] : T{0};
}

}  // namespace ashlar::cpu
