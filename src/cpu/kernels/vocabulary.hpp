// Rows of logits over a vocabulary, for cross-entropy.
#pragma once

#include <cstdint>

#include "cpu/kernels/pointwise.hpp"

namespace ashlar::cpu {

template <class T>
struct ExpSum {
  T sum;      // of exp(x[i] - shift); unspecified where some x[i] - shift is above 88, or NaN
  T largest;  // x[i], NaN if one is
};

template <class T>
struct VocabularyRows {
  // Prefetches `n` elements at `prefetch` meanwhile, unless it is null; the address may be invalid.
  ExpSum<T> (*exp_sum)(const T* x, T shift, std::int64_t n, const T* prefetch);
  // y = (exp(x - shift) - offset) * factor; y may alias x.
  void (*gradient)(const T* x, T shift, T offset, T factor, std::int64_t n, T* y,
                   const RowHints& hints);
};

// The best implementation for this CPU.
template <class T>
const VocabularyRows<T>& vocabulary_rows();

}  // namespace ashlar::cpu
