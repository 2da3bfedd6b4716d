// Mixture of experts.
#pragma once

#include <cstdint>

namespace ashlar {

// none: rows of token stand expert by expert, and so do rows of output.
// gather: row r of the product is made from token[token_index[r]].
// scatter: row r of the product goes to output[token_index[r] * top_k + token_ks[r]].
enum class MoeMode : std::uint8_t { none, gather, scatter };

struct MoeAttributes {
  MoeMode mode = MoeMode::none;
  std::int64_t top_k = 1;  // experts each token goes to

  template <class Self, class Visitor>
  static void attributes(Self& self, Visitor&& visit) {
    visit("mode", self.mode);
    visit("top_k", self.top_k);
  }
};

// output[r] = token[r] weight[g % E] for the rows r of group g: from first_token_offset[g] to that
// of g + 1, or to the last row. token [1, M, K], weight [E, K, N], first_token_offset [G, 1, 1]
// with G a multiple of E, token_index and token_ks [1, rows, 1], output [1, M', N]. Offsets are
// made rising and kept inside [0, rows]; an index outside its tensor makes a row of zeros (gather)
// or none (scatter). Rows of output that nothing goes to are 0; what goes to the same row adds up.
struct MoeGroupedMatmul : MoeAttributes {
  enum In { token, weight, first_token_offset, token_index, token_ks };
  enum Out { output };
};
// dweight needs no weight; without one there are G experts.
struct MoeGroupedMatmulBackward : MoeAttributes {
  enum In { doutput, token, weight, first_token_offset, token_index, token_ks };
  enum Out { dweight, dtoken };
};

}  // namespace ashlar
