// Maxima, sums and averages of several rows, element by element.
#pragma once

#include <cstdint>

namespace ashlar::cpu {

// y overlaps none of the others.
template <class T>
struct WindowRows {
  // y[i] = max over r < n of rows[r][i]: NaN where there is one, -infinity for no rows.
  void (*maximum)(const T* const* rows, std::int64_t n, std::int64_t count, T* y);
  // y[i] = sum over r < n of rows[r][i]
  void (*sum)(const T* const* rows, std::int64_t n, std::int64_t count, T* y);
  // y[i] = (sum over r < n of rows[r][i]) / divisor
  void (*average)(const T* const* rows, std::int64_t n, T divisor, std::int64_t count, T* y);
  // y[i] = x[i] / (divisors[i] * factor)
  void (*divide)(const T* x, const T* divisors, T factor, std::int64_t count, T* y);
};

// The best for this processor.
template <class T>
WindowRows<T> window_rows();

}  // namespace ashlar::cpu
