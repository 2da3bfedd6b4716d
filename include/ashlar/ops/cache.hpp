// Caches in pages and matrices in bands.
#pragma once

#include <cstdint>

namespace ashlar {

// y[b, h, s, d] = container[page_table[b][s / block], h, s % block, d] for s < sequence[b], else 0.
// container [blocks, H, block, D], page_table [B, 1, pages, 1], sequence [B, 1, 1, 1]; y has the
// dims asked for, [B, H, S, D] or, transposed, [B, H, D, S]. A page outside the container is 0.
struct PagedCacheLoad {
  enum In { container, page_table, sequence };
  enum Out { y };
  bool transposed = false;

  template <class Self, class Visitor>
  static void attributes(Self& self, Visitor&& visit) {
    visit("transposed", self.transposed);
  }
};

// A band matrix holds, in each row i, the columns i - lower to i + upper of a square or rectangular
// matrix as lower + upper + 1 columns. Expanding writes them to their columns and pad_value
// elsewhere; contracting is the inverse and writes pad_value where the band leaves the matrix.
struct BandAttributes {
  std::int64_t lower_bandwidth = 0;
  std::int64_t upper_bandwidth = 0;
  std::int64_t axis = -1;  // the one that is expanded or contracted; rows are the axis before it
  double pad_value = 0.0;

  template <class Self, class Visitor>
  static void attributes(Self& self, Visitor&& visit) {
    visit("lower_bandwidth", self.lower_bandwidth);
    visit("upper_bandwidth", self.upper_bandwidth);
    visit("axis", self.axis);
    visit("pad_value", self.pad_value);
  }
};
// kv_token_offset [B, 1, ...] is added to the columns of a batch.
struct ExpandBandMatrix : BandAttributes {
  enum In { x, kv_token_offset };
  enum Out { y };
};
struct ContractBandMatrix : BandAttributes {
  enum In { x, kv_token_offset };
  enum Out { y };
};

}  // namespace ashlar
