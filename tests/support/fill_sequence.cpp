// Offsets, indices, page tables and lengths: mostly in range, sometimes just outside.
#include <algorithm>

#include "support/fill_use.hpp"

namespace ashlar::support {

namespace {

const Dims& output_dims(const Use& use, int slot) {
  return use.graph->tensor(use.node->outputs[static_cast<std::size_t>(slot)]).dims;
}

// Mostly increasing, so that most groups have rows.
double group_start(const Use& use, Random& random, std::int64_t rows) {
  const std::int64_t groups = std::max<std::int64_t>(use.tensor->dims[0], 1);
  if (random() % 16 == 0) return whole(random, -2, rows + 2);
  return static_cast<double>(use.element * rows / groups) + whole(random, 0, 1);
}

std::optional<double> fill_mixture(const Use& use, Random& random, const MoeAttributes& op,
                                   std::int64_t tokens, std::int64_t rows,
                                   std::int64_t output_rows) {
  if (use.slot == "first_token_offset") return group_start(use, random, rows);
  if (use.slot == "token_index")
    return whole(random, -1, op.mode == MoeMode::gather ? tokens : output_rows / op.top_k);
  if (use.slot == "token_ks") return whole(random, random() % 8 == 0 ? -1 : 0, op.top_k - 1);
  return std::nullopt;
}

template <class OpType>
std::int64_t row_count(const Use& use, const OpType& op) {
  return use.dims(op.mode == MoeMode::gather ? int{OpType::token_index} : int{OpType::token})[1];
}

}  // namespace

std::optional<double> fill_sequence(const Use& use, Random& random) {
  if (const auto* moe = std::get_if<MoeGroupedMatmul>(&use.node->op))
    return fill_mixture(use, random, *moe, use.dims(MoeGroupedMatmul::token)[1],
                        row_count(use, *moe), output_dims(use, MoeGroupedMatmul::output)[1]);
  if (const auto* moe = std::get_if<MoeGroupedMatmulBackward>(&use.node->op))
    return fill_mixture(use, random, *moe, use.dims(MoeGroupedMatmulBackward::token)[1],
                        row_count(use, *moe), use.dims(MoeGroupedMatmulBackward::doutput)[1]);
  if (const auto* load = std::get_if<PagedCacheLoad>(&use.node->op)) {
    if (use.slot == "page_table") return whole(random, -1, use.dims(PagedCacheLoad::container)[0]);
    if (use.slot == "sequence")
      return whole(random, -1, output_dims(use, PagedCacheLoad::y)[load->transposed ? 3 : 2] + 1);
  }
  if (use.slot == "kv_token_offset") return whole(random, -2, 2);
  return std::nullopt;
}

}  // namespace ashlar::support
