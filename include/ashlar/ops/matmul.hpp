// Batched matrix multiplication.
#pragma once

#include <ashlar/ops/slots.hpp>

namespace ashlar {

// c[..., m, n] = sum over k of a[..., m, k] * b[..., k, n]; batch axes broadcast.
// m_override, n_override and k_override hold the valid M, N and K of each batch; c is
// `padding_value` outside of M and N.
struct Matmul {
  ASHLAR_INPUTS(a, b, ASHLAR_OPTIONAL(m_override, n_override, k_override));
  ASHLAR_OUTPUTS(c);
  double padding_value = 0.0;

  template <class Self, class Visitor>
  static void attributes(Self& self, Visitor&& visit) {
    visit("padding_value", self.padding_value);
  }
};

}  // namespace ashlar
