// Searches of rows for candidates of top_k.
#pragma once

#include <cstdint>

namespace ashlar::cpu {

template <class T>
struct TopKRows {
  // The first i in [begin, n) with x[i] better than `bound`, or n. Better is larger if `largest`,
  // else smaller; NaN is the largest number and equal to NaN.
  std::int64_t (*find_better)(const T* x, std::int64_t begin, std::int64_t n, T bound,
                              bool largest);
};

// The table for this CPU.
template <class T>
const TopKRows<T>& top_k_rows();

}  // namespace ashlar::cpu
