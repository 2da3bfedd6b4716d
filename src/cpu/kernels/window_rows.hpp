// Element-wise maxima, sums and averages of several rows (pooling).
#pragma once

#include <cstdint>

namespace ashlar::cpu {

// y must not overlap any other row.
template <class T>
struct WindowRows {
  // y[i] = max over r < n of rows[r][i]: propagates NaN, -infinity for n = 0.
  void (*maximum)(const T* const* rows, std::int64_t n, std::int64_t count, T* y);
  // y[i] = sum over r < n of rows[r][i]
  void (*sum)(const T* const* rows, std::int64_t n, std::int64_t count, T* y);
  // y[i] = (sum over r < n of rows[r][i]) / divisor
  void (*average)(const T* const* rows, std::int64_t n, T divisor, std::int64_t count, T* y);
  // y[i] = x[i] / (divisors[i] * factor)
  void (*divide)(const T* x, const T* divisors, T factor, std::int64_t count, T* y);
  // even[i] = x[2 i], odd[i] = x[2 i + 1]; writes up to a vector past the last pair.
  void (*split_pairs)(const T* x, std::int64_t pairs, T* even, T* odd);
};

// The best implementation for this CPU.
template <class T>
WindowRows<T> window_rows();

}  // namespace ashlar::cpu
