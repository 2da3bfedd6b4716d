// Paged KV caches and band matrices.
#pragma once

#include <ashlar/ops/slots.hpp>
#include <cstdint>

namespace ashlar {

// y[b, h, s, d] = container[page_table[b][s / block], h, s % block, d] for s < sequence[b], else 0.
// container [blocks, H, block, D], page_table [B, 1, pages, 1], sequence [B, 1, 1, 1]; y is
// [B, H, S, D] or, if transposed, [B, H, D, S]. A page number out of range reads zeros.
struct PagedCacheLoad {
  ASHLAR_INPUTS(container, page_table, ASHLAR_OPTIONAL(sequence));
  ASHLAR_OUTPUTS(y);
  bool transposed = false;

  template <class Self, class Visitor>
  static void attributes(Self& self, Visitor&& visit) {
    visit("transposed", self.transposed);
  }
};

// Band storage keeps columns i - lower to i + upper of each row i of a matrix, as
// lower + upper + 1 columns. Expanding writes them back to their columns and pad_value elsewhere;
// contracting is the inverse and writes pad_value where the band extends beyond the matrix.
struct BandAttributes {
  std::int64_t lower_bandwidth = 0;
  std::int64_t upper_bandwidth = 0;
  std::int64_t axis = -1;  // the column axis; rows are the axis before it
  double pad_value = 0.0;

  template <class Self, class Visitor>
  static void attributes(Self& self, Visitor&& visit) {
    visit("lower_bandwidth", self.lower_bandwidth);
    visit("upper_bandwidth", self.upper_bandwidth);
    visit("axis", self.axis);
    visit("pad_value", self.pad_value);
  }
};
// kv_token_offset [B, 1, ...] is added to the column indices of a batch.
struct ExpandBandMatrix : BandAttributes {
  ASHLAR_INPUTS(x, ASHLAR_OPTIONAL(kv_token_offset));
  ASHLAR_OUTPUTS(y);
};
struct ContractBandMatrix : BandAttributes {
  ASHLAR_INPUTS(x, ASHLAR_OPTIONAL(kv_token_offset));
  ASHLAR_OUTPUTS(y);
};

}  // namespace ashlar
