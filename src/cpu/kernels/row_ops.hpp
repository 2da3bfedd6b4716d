// Vectorised arithmetic on short contiguous rows, for norms, softmax, reductions and attention.
#pragma once

#include <cstdint>

namespace ashlar::cpu {

enum class Fold : std::uint8_t { sum, product, minimum, maximum };
enum class Premap : std::uint8_t { identity, absolute, square, one_for_zero };

// An operand of a row: one value per element, or a scalar.
template <class T>
struct RowArg {
  const T* data;
  bool per_element;
};

// `_into` functions work per column: element i of the row is combined into accumulator i. Minimum
// and maximum propagate NaN.
template <class T>
struct RowOps {
  // The fold of premap(x[i]); the neutral element for n = 0.
  T (*fold)(Fold fold, Premap premap, const T* x, std::int64_t n);
  void (*fold_into)(Fold fold, Premap premap, const T* x, std::int64_t n, T* accumulator);
  T (*dot)(const T* a, const T* b, std::int64_t n);
  void (*dot_into)(const T* a, const T* b, std::int64_t n, T* accumulator);
  // Sum of (x[i] - mean)^2.
  T (*squares_about)(const T* x, T mean, std::int64_t n);
  void (*squares_about_into)(const T* x, const T* mean, std::int64_t n, T* accumulator);
  // y = (x - mean) * inv * scale + bias
  void (*normalise)(const T* x, RowArg<T> mean, RowArg<T> inv, RowArg<T> scale, RowArg<T> bias,
                    std::int64_t n, T* y);
  // y = (a - c - b * d) * factor
  void (*gradient)(const T* a, const T* b, RowArg<T> c, RowArg<T> d, RowArg<T> factor,
                   std::int64_t n, T* y);
  // y = a * b
  void (*multiply)(const T* a, RowArg<T> b, std::int64_t n, T* y);
  // y += a * x
  void (*axpy)(T a, const T* x, std::int64_t n, T* y);
  // y = exp(x - shift), for x <= shift or NaN; returns the sum of y. y may alias x.
  T (*exp_shifted)(const T* x, RowArg<T> shift, std::int64_t n, T* y);
  // Where x[i] beats best[i] (greater, or the first NaN, or where[i] < 0: no candidate yet), sets
  // best[i] = x[i] and where[i] = position.
  void (*argmax_into)(const T* x, T position, std::int64_t n, T* best, T* where);
  // sums[i] += x[i] where where[i] == position
  void (*add_where)(const T* x, const T* where, T position, std::int64_t n, T* sums);
};

// The table for this CPU.
template <class T>
const RowOps<T>& row_ops();

}  // namespace ashlar::cpu
