// Input values for multi-head attention.
#include "graph/schema.hpp"
#include "support/fill_use.hpp"

namespace ashlar::support {

std::optional<double> fill_multi_head(const Use& use, Random& random) {
  if (schema_of(use.node->op).doc_page != "multi_head_attention") return std::nullopt;
  using MultiHead = MultiHeadAttentionForward;
  const std::int64_t queries = use.dims(MultiHead::q)[2], keys = use.dims(MultiHead::k)[2];
  // Sometimes out of range at either end: the operation clamps.
  if (use.slot == "seq_len_q") return whole(random, -1, queries + 1);
  if (use.slot == "seq_len_kv") return whole(random, -1, keys + 1);
  if (use.slot == "window_low") return whole(random, -2, (keys + 1) / 2);
  if (use.slot == "window_high") return whole(random, keys / 3, keys + 2);
  for (const char* seed :
       {"dropout_seed", "dropout_offset", "post_dropout_seed", "post_dropout_offset"})
    if (use.slot == seed) return whole(random, 0, 100);
  return std::nullopt;
}

}  // namespace ashlar::support
