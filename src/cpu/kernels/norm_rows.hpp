// Arithmetic of norms and softmax on rows and blocks of rows, with prefetch and streaming hints.
#pragma once

#include <cstdint>

#include "cpu/kernels/pointwise.hpp"
#include "cpu/kernels/row_ops.hpp"

namespace ashlar::cpu {

// With RowHints::stream, y need not be aligned here.
template <class T>
struct NormRows {
  // y = (x - mean) * inv * scale + bias
  void (*normalise)(const T* x, RowArg<T> mean, RowArg<T> inv, RowArg<T> scale, RowArg<T> bias,
                    std::int64_t n, T* y, const RowHints& hints);
  // y = (a - c - b * d) * factor
  void (*gradient)(const T* a, const T* b, RowArg<T> c, RowArg<T> d, RowArg<T> factor,
                   std::int64_t n, T* y, const RowHints& hints);
  // y = x * factor
  void (*scale)(const T* x, RowArg<T> factor, std::int64_t n, T* y, const RowHints& hints);
  // y = x - first - second, in this order
  void (*subtract)(const T* x, RowArg<T> first, RowArg<T> second, std::int64_t n, T* y,
                   const RowHints& hints);

  // Blocks of `rows` contiguous rows of `width` elements. Statistics per row: y = (x - mean) * inv
  // * scale[j] + bias[j], inv = 1 / sqrt(variance + epsilon); mean = 0 if the norm is not
  // `centred`.
  void (*norm_block)(const T* x, std::int64_t rows, std::int64_t width, bool centred, T epsilon,
                     const T* scale, const T* bias, T* means, T* invs, T* y, const RowHints& hints);
  // With x_hat = (x - mean) * inv and g = dy * scale[j]: dx = (g - mean(g) - x_hat * mean(g *
  // x_hat)) * inv, without mean(g) if the norm is not `centred`.
  void (*gradient_block)(const T* dy, const T* x, std::int64_t rows, std::int64_t width,
                         bool centred, const T* scale, const T* means, const T* invs, T* dx,
                         const RowHints& hints);
  // sums[j] += sum of dy[., j], products[j] += sum of dy[., j] * x_hat[., j]
  void (*add_row_products)(const T* dy, const T* x, std::int64_t rows, std::int64_t width,
                           const T* means, const T* invs, T* sums, T* products);
  // Statistics per column:
  // sums[j] += sum of x[., j]
  void (*add_columns)(const T* x, std::int64_t rows, std::int64_t width, T* sums);
  // sums[j] += sum of (x[., j] - mean[j])^2
  void (*add_column_squares)(const T* x, std::int64_t rows, std::int64_t width, const T* mean,
                             T* sums);
  // y = (x - mean[j]) * factor[j] + bias[j]
  void (*normalise_columns)(const T* x, std::int64_t rows, std::int64_t width, const T* mean,
                            const T* factor, const T* bias, T* y, const RowHints& hints);
  // With g = dy and x_hat = (x - mean[j]) * inv[j]: sums[j] += sum of g, products[j] += sum of
  // g * x_hat.
  void (*add_column_products)(const T* dy, const T* x, std::int64_t rows, std::int64_t width,
                              const T* mean, const T* inv, T* sums, T* products);
  // dx = (dy - g[j] - x_hat * gx[j]) * factor[j]
  void (*column_gradient)(const T* dy, const T* x, std::int64_t rows, std::int64_t width,
                          const T* mean, const T* inv, const T* g, const T* gx, const T* factor,
                          T* dx, const RowHints& hints);
};

// The table for this CPU.
template <class T>
const NormRows<T>& norm_rows();

}  // namespace ashlar::cpu
