// The softmax weight, shared by softmax and attention.
#pragma once

#include "reference/scalar.hpp"

namespace ashlar::reference {

// exp(x - largest). Implementations may fold constants into the subtraction, which rounds a product
// as large as `largest`, and may rescale with a running maximum (online softmax): a few more
// roundings of the weight.
template <class Scalar>
Scalar softmax_weight(Scalar x, Scalar largest) {
  constexpr double kFoldedSubtraction = 4.0, kRescaling = 8.0;
  const Scalar weight = exp(allow_units(x - largest, kFoldedSubtraction, largest));
  return allow_units(weight, kRescaling, weight);
}

}  // namespace ashlar::reference
