// Few rows of A against rows of B along the depth: sums of products, B read once and in order.
#pragma once

#include "cpu/gemm/gemm_layout.hpp"
#include "cpu/kernels/dot_rows.hpp"
#include "cpu/threads.hpp"

namespace ashlar::cpu {

// At most kSkinny rows; `rows` has room for A.
template <class T>
void gemm_dots(const GemmShape& shape, std::int64_t threads, const GemmOperand<T>& a,
               const GemmOperand<T>& b, const GemmSink<T>& sink, T* rows) {
  constexpr std::int64_t kColumns = 128, kPiece = 1024;  // of C at once; of the depth
  const DotRows<T> dot = dot_rows<T>();
  for (std::int64_t batch = 0; batch < shape.batch; ++batch) {
    const T* vectors[kSkinny];
    for (std::int64_t m = 0; m < shape.m; ++m) {
      T* values = rows + m * shape.k;
      vectors[m] = values;
      if (a.along_depth())
        a.row(batch, m, 0, shape.k, values);
      else
        for (std::int64_t l = 0; l < shape.k; ++l) a.row(batch, l, m, 1, values + l);
    }
    const std::int64_t blocks = divide_up(shape.n, kColumns);
    const std::int64_t pieces = std::max(blocks, std::min(threads, divide_up(shape.n, kDotRows)));
    const double flops =
        2.0 * static_cast<double>(shape.m * shape.n) * static_cast<double>(shape.k);
    const std::int64_t grain =
        std::max(tasks_worth_a_thread(pieces, flops), divide_up(pieces, threads));
    parallel_for(pieces, grain, [&](std::int64_t from, std::int64_t to, int) {
      alignas(64) T buffer[kDotRows * kPiece];
      alignas(64) T sums[kSkinny][kColumns];
      for (std::int64_t piece = from; piece < to; ++piece) {
        const Range columns(shape.n, piece, pieces);
        for (std::int64_t n = columns.begin; n < columns.end; n += kDotRows) {
          const std::int64_t count = std::min(kDotRows, columns.end - n);
          T totals[kSkinny * kDotRows] = {};
          for (std::int64_t start = 0; start < shape.k; start += kPiece) {
            const std::int64_t length = std::min(kPiece, shape.k - start);
            const T* right[kDotRows];
            const T* left[kMostDots];
            for (std::int64_t i = 0; i < kDotRows; ++i)
              right[i] =
                  i < count ? b.view(batch, n + i, start, length, buffer + i * kPiece) : right[0];
            for (std::int64_t m = 0; m < shape.m; m += kMostDots) {
              const std::int64_t some = std::min(kMostDots, shape.m - m);
              for (std::int64_t i = 0; i < some; ++i) left[i] = vectors[m + i] + start;
              dot(right, left, some, length, totals + m * kDotRows);
            }
          }
          for (std::int64_t m = 0; m < shape.m; ++m)
            for (std::int64_t i = 0; i < count; ++i)
              sums[m][n - columns.begin + i] = totals[m * kDotRows + i];
        }
        for (std::int64_t m = 0; m < shape.m; ++m)
          sink.row(batch, m, columns.begin, columns.size(), sums[m]);
      }
    });
  }
}

}  // namespace ashlar::cpu
