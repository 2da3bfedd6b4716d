// Rotary position embedding.
#pragma once

#include <ashlar/ops/slots.hpp>
#include <cstdint>

namespace ashlar {

// Which elements of a row form pair i of width / 2.
enum class RopePairs : std::uint8_t {
  half,         // i and i + width / 2 (GPT-NeoX, Llama in Hugging Face's layout)
  interleaved,  // 2 i and 2 i + 1 (GPT-J, Llama's own)
};

// x [B, H, S, D]. Pair i of row s is rotated by the angle position * base^(-2 i / width), with
// position = positions[b, s] (positions is [B, S] or [1, S]), or s without it; the elements from
// `width` on are copied (width 0: D). With cos and sin [B or 1, H or 1, S, width / 2] the angles
// come from there, without positions; base and the attributes after it are then not used.
// inverse: rotated back, which is also the gradient.
// factor > 1: YaRN (Peng et al. 2023). Pairs with at most beta_slow turns within original_length
// are slowed down by `factor`, pairs with at least beta_fast turns are not, those between are
// interpolated linearly in i. Computed cos and sin are scaled by attention_factor, 0 means
// 0.1 ln(factor) + 1.
struct Rope {
  ASHLAR_INPUTS(x, ASHLAR_OPTIONAL(positions, cos, sin));
  ASHLAR_OUTPUTS(y);
  RopePairs pairs = RopePairs::half;
  std::int64_t width = 0;
  bool inverse = false;
  double base = 10000.0;
  double factor = 1.0;
  std::int64_t original_length = 4096;
  double beta_fast = 32.0;
  double beta_slow = 1.0;
  double attention_factor = 0.0;

  template <class Self, class Visitor>
  static void attributes(Self& self, Visitor&& visit) {
    visit("pairs", self.pairs);
    visit("width", self.width);
    visit("inverse", self.inverse);
    visit("base", self.base);
    visit("factor", self.factor);
    visit("original_length", self.original_length);
    visit("beta_fast", self.beta_fast);
    visit("beta_slow", self.beta_slow);
    visit("attention_factor", self.attention_factor);
  }
};

}  // namespace ashlar
