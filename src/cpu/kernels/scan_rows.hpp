// Prefix sums, products, minima and maxima of rows.
#pragma once

#include "cpu/kernels/row_ops.hpp"

namespace ashlar::cpu {

// Minimum and maximum propagate NaN.
template <class T>
struct ScanRows {
  // Along a row: y[i] = start combined with x[0] to x[i]; `reverse`: with x[i] to x[n - 1]. Returns
  // the fold of x, without `start`, by the same operations whatever `start` is. y may alias x.
  T (*along)(Fold fold, bool reverse, const T* x, T start, std::int64_t n, T* y);
  // One row of a scan across rows: fold[i] is combined with x[i]; y[i] = base[i] combined with
  // fold[i], before that if `exclusive`, else after.
  void (*across)(Fold fold, bool exclusive, const T* x, const T* base, std::int64_t n, T* folds,
                 T* y);
};

// The table for this CPU.
template <class T>
const ScanRows<T>& scan_rows();

}  // namespace ashlar::cpu
