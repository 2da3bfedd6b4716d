// Mixture of experts (MoE): grouped matmul with routing.
#pragma once

#include <ashlar/ops/slots.hpp>
#include <cstdint>

namespace ashlar {

// none: rows of token and of output are sorted by expert.
// gather: row r of the grouped matmul reads token[token_index[r]].
// scatter: row r of the grouped matmul is written to output[token_index[r] * top_k + token_ks[r]].
enum class MoeMode : std::uint8_t { none, gather, scatter };

struct MoeAttributes {
  MoeMode mode = MoeMode::none;
  std::int64_t top_k = 1;  // experts per token

  template <class Self, class Visitor>
  static void attributes(Self& self, Visitor&& visit) {
    visit("mode", self.mode);
    visit("top_k", self.top_k);
  }
};

// output[r] = token[r] weight[g % E] for the rows r of group g, which are
// [first_token_offset[g], first_token_offset[g + 1]), up to the last row for the last group.
// token [1, M, K], weight [E, K, N], first_token_offset [G, 1, 1] with G a multiple of E,
// token_index and token_ks [1, rows, 1], output [1, M', N]. Offsets are clamped to [0, rows] and
// made non-decreasing. A row whose index is out of range reads zeros (gather) or is dropped
// (scatter). Output rows without a source are 0; rows scattered to the same destination are summed.
struct MoeGroupedMatmul : MoeAttributes {
  ASHLAR_INPUTS(token, weight, first_token_offset, ASHLAR_OPTIONAL(token_index, token_ks));
  ASHLAR_OUTPUTS(output);
};
// dweight alone does not need weight; without weight the number of experts is G.
struct MoeGroupedMatmulBackward : MoeAttributes {
  ASHLAR_INPUTS(doutput, token, ASHLAR_OPTIONAL(weight), first_token_offset,
                ASHLAR_OPTIONAL(token_index, token_ks));
  ASHLAR_OUTPUTS(dweight, ASHLAR_OPTIONAL(dtoken));
};

}  // namespace ashlar
