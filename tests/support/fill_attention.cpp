// Input values for attention.
#include <algorithm>
#include <cmath>

#include "support/fill_use.hpp"

namespace ashlar::support {

namespace {

// Mostly valid block numbers of the container, sometimes one out of range.
double page(const Dims& container, Random& random) {
  if (container[0] == 0 || random() % 12 == 0) return random() % 2 == 0 ? -1.0 : 1e6;
  return whole(random, 0, container[0] - 1);
}

template <class Op>
std::optional<double> fill_for(const Op& op, const Use& use, Random& random) {
  const std::string_view slot = use.slot;
  const std::int64_t keys = op.max_seq_len_kv.value_or(use.dims(Op::k)[2]);
  if (slot == "seq_len_q") return whole(random, 0, use.dims(Op::q)[2]);
  if (slot == "seq_len_kv") return whole(random, 0, keys);
  if (slot == "dropout_seed" || slot == "dropout_offset") return whole(random, 0, 100);
  if (slot == "dropout_mask") return whole(random, 0, 1);
  if (slot == "scale_tensor") return 0.375;
  if (slot == "page_table_k") return page(use.dims(Op::k), random);
  if (slot == "page_table_v") return page(use.dims(Op::v), random);
  if (slot == "block_mask") return random() % 4 == 0 ? 0.0 : 1.0;
  // Scales that map the weights to the fp8 range, and descales that undo it.
  if (slot == "scale_s" || slot == "scale_dp") return 128.0;
  if (slot == "descale_s" || slot == "descale_dp") return 1.0 / 128.0;
  if (slot.starts_with("descale_") || slot.starts_with("scale_")) return uniform(random, 0.5, 1.5);
  // Close to the forward operation's stats, so that the weights sum to about one.
  if (slot == "stats")
    return std::log(static_cast<double>(std::max<std::int64_t>(1, keys))) +
           uniform(random, 0.0, 1.0);
  return std::nullopt;
}

}  // namespace

std::optional<double> fill_attention(const Use& use, Random& random) {
  if (const auto* op = std::get_if<AttentionForward>(&use.node->op))
    return fill_for(*op, use, random);
  if (const auto* op = std::get_if<AttentionBackward>(&use.node->op))
    return fill_for(*op, use, random);
  return std::nullopt;
}

}  // namespace ashlar::support
