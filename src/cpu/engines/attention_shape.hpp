// The extents of an attention problem.
#pragma once

#include <algorithm>

#include "plan/region.hpp"

namespace ashlar::cpu {

inline constexpr std::int64_t kKeyTile = 128;  // key tile: columns of scores at once

struct AttentionShape {
  std::int64_t batch, heads, k_heads, v_heads, queries, keys, head_dim, value_dim;

  // Attention is AttentionForward or AttentionBackward: their operand slots have the same names but
  // different indices.
  template <class Attention>
  AttentionShape(const Anchor& anchor, const Attention& op) {
    const auto dims = [&](int slot) -> const Dims& {
      return anchor.inputs[static_cast<std::size_t>(slot)].dims;
    };
    const Dims &q = dims(Attention::q), &k = dims(Attention::k), &v = dims(Attention::v);
    batch = q[0], heads = q[1], queries = q[2], head_dim = q[3];
    k_heads = k[1], v_heads = v[1], value_dim = v[3];
    const auto capacity = [&](int container, int table) {
      const auto slot = static_cast<std::size_t>(table);
      const bool paged = slot < anchor.inputs.size() && anchor.inputs[slot].present();
      if (!paged) return dims(container)[2];
      return op.max_seq_len_kv.value_or(dims(container)[2] * anchor.inputs[slot].dims[2]);
    };
    keys = std::min(capacity(Attention::k, Attention::page_table_k),
                    capacity(Attention::v, Attention::page_table_v));
  }
  std::int64_t key_tiles() const { return (keys + kKeyTile - 1) / kKeyTile; }
  std::int64_t k_head_of(std::int64_t head) const { return head / (heads / k_heads); }
  std::int64_t v_head_of(std::int64_t head) const { return head / (heads / v_heads); }
  Dims scores() const { return {batch, heads, queries, keys}; }
};

// Half-open range of columns.
struct ScoreColumns {
  std::int64_t begin = 0, end = 0;
  bool empty() const { return begin >= end; }
  std::int64_t size() const { return end - begin; }
  ScoreColumns within(ScoreColumns other) const {
    return {std::max(begin, other.begin), std::min(end, other.end)};
  }
};

}  // namespace ashlar::cpu
