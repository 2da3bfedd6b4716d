// The register-blocked product of two packed panels.
#pragma once

#include <cstdint>

namespace ashlar::cpu {

// What every processor's block divides: rows and columns of blocks are multiples of these.
inline constexpr std::int64_t kGemmRowMultiple = 12;
template <class T>
inline constexpr std::int64_t kGemmColumnMultiple = 128 / static_cast<std::int64_t>(sizeof(T));

template <class T>
struct GemmKernel {
  std::int64_t rows;     // of A's panels; divides kGemmRowMultiple
  std::int64_t columns;  // of B's panels; divides kGemmColumnMultiple
  // C[i][j] = (accumulate ? C[i][j] : 0) + sum over l < depth of a[l * rows + i] * b[l * columns +
  // j], for i < used_rows and every column of the panel.
  void (*multiply)(std::int64_t depth, std::int64_t used_rows, const T* a, const T* b, T* c,
                   std::int64_t c_stride, bool accumulate);
};

// An element of type int32_t is two 16-bit integers, neighbours in depth, the first in the low
// half; the product of two elements is the sum of the products of their halves, and sums wrap.

// The best for this processor.
template <class T>
GemmKernel<T> gemm_kernel();

}  // namespace ashlar::cpu
