// Tiling of attention forward.
#pragma once

#include "cpu/engines/attention_fp8.hpp"
#include "cpu/gemm/gemm.hpp"
#include "cpu/kernels/gemm_micro_kernel.hpp"

namespace ashlar::cpu {

// maximum query rows per tile: L2
inline constexpr std::int64_t kMaxRows = 18 * kPanelRowMultiple;
inline constexpr std::int64_t kFewRows =
    8;  // up to this many rows, transposing keys costs more than it saves

// Normalised weights are needed if they are rounded to fp8 or their amax is an output.
inline bool needs_two_passes(const Region& region) {
  using In = AttentionForward::In;
  using Out = AttentionForward::Out;
  const auto amax = static_cast<std::size_t>(Out::amax_s);
  return is_fp8(region.anchor->inputs[In::q].dtype) ||
         (amax < region.anchor->outputs.size() && region.anchor->outputs[amax].present());
}

// A tile has `rows` rows of each of `heads` heads that share keys and values. If there are fewer
// tiles than threads, the keys of a tile are split into `splits` parts (flash decoding).
struct AttentionTiling {
  std::int64_t rows, heads, query_tiles, head_blocks, splits, tiles_per_split;
  bool packed;  // keys and values packed once, for all tiles

  AttentionTiling(const AttentionShape& shape, const Region& region, std::int64_t threads) {
    const std::int64_t queries = std::max<std::int64_t>(shape.queries, 1);
    const std::int64_t group = shape.k_heads == shape.v_heads && shape.k_heads > 0
                                   ? std::max<std::int64_t>(shape.heads / shape.k_heads, 1)
                                   : 1;
    heads = queries * group <= kMaxRows && queries <= kFewRows ? group : 1;
    packed = heads * queries > kFewRows;
    // Eight tiles per thread, for load balance.
    const std::int64_t share =
        divide_up(shape.batch * shape.heads * queries, 8 * threads * kPanelRowMultiple) *
        kPanelRowMultiple;
    const std::int64_t most = std::min(kMaxRows, share);
    const std::int64_t even =
        divide_up(queries, divide_up(queries, std::max(most, kPanelRowMultiple)));
    rows = heads > 1 ? queries : std::min(queries, round_up(even, kPanelRowMultiple));
    query_tiles = divide_up(queries, rows);
    head_blocks = shape.heads / heads;
    const std::int64_t items = std::max<std::int64_t>(shape.batch * head_blocks * query_tiles, 1);
    splits = needs_two_passes(region) || items >= threads
                 ? 1
                 : std::clamp<std::int64_t>(2 * threads / items, 1,
                                            std::max<std::int64_t>(shape.key_tiles(), 1));
    tiles_per_split = divide_up(std::max<std::int64_t>(shape.key_tiles(), 1), splits);
  }
  std::int64_t tile_rows() const { return rows * heads; }
};

}  // namespace ashlar::cpu
