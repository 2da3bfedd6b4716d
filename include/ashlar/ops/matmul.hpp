// Batched matrix multiplication.
#pragma once

namespace ashlar {

// c[..., m, n] = sum over k of a[..., m, k] * b[..., k, n]; batch axes broadcast.
// m_override, n_override and k_override hold the valid M, N and K of each batch; c is
// `padding_value` outside of M and N.
struct Matmul {
  enum In { a, b, m_override, n_override, k_override };
  enum Out { c };
  double padding_value = 0.0;

  template <class Self, class Visitor>
  static void attributes(Self& self, Visitor&& visit) {
    visit("padding_value", self.padding_value);
  }
};

}  // namespace ashlar
