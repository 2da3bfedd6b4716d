// Skinny GEMM as dot products: few rows of A, rows of B along K. B is streamed once.
#pragma once

#include "cpu/gemm/gemm_layout.hpp"
#include "cpu/kernels/dot_rows.hpp"
#include "cpu/threads.hpp"

namespace ashlar::cpu {

// M <= kSkinny; `rows` has room for A.
template <class T>
void gemm_dots(const GemmShape& shape, std::int64_t threads, const GemmOperand<T>& a,
               const GemmOperand<T>& b, const GemmSink<T>& sink, T* rows) {
  constexpr std::int64_t kColumns = 128, kChunk = 1024;  // columns of C, elements of K at once
  const DotRows<T> dot = dot_rows<T>();
  for (std::int64_t batch = 0; batch < shape.batch; ++batch) {
    const T* vectors[kSkinny];
    for (std::int64_t m = 0; m < shape.m; ++m) {
      T* values = rows + m * shape.k;
      vectors[m] = values;
      if (a.along_k())
        a.row(batch, m, 0, shape.k, values);
      else
        for (std::int64_t l = 0; l < shape.k; ++l) a.row(batch, l, m, 1, values + l);
    }
    const std::int64_t blocks = divide_up(shape.n, kColumns);
    const std::int64_t chunks = std::max(blocks, std::min(threads, divide_up(shape.n, kDotRows)));
    const double flops =
        2.0 * static_cast<double>(shape.m * shape.n) * static_cast<double>(shape.k);
    const std::int64_t grain =
        std::max(tasks_worth_a_thread(chunks, flops), divide_up(chunks, threads));
    parallel_for(chunks, grain, [&](std::int64_t from, std::int64_t to, int) {
      alignas(64) T buffer[kDotRows * kChunk];
      alignas(64) T sums[kSkinny][kColumns];
      for (std::int64_t chunk = from; chunk < to; ++chunk) {
        const Range columns(shape.n, chunk, chunks);
        for (std::int64_t n = columns.begin; n < columns.end; n += kDotRows) {
          const std::int64_t count = std::min(kDotRows, columns.end - n);
          T totals[kSkinny * kDotRows] = {};
          for (std::int64_t start = 0; start < shape.k; start += kChunk) {
            const std::int64_t length = std::min(kChunk, shape.k - start);
            const T* right[kDotRows];
            const T* left[kMaxDots];
            for (std::int64_t i = 0; i < kDotRows; ++i)
              right[i] =
                  i < count ? b.view(batch, n + i, start, length, buffer + i * kChunk) : right[0];
            for (std::int64_t m = 0; m < shape.m; m += kMaxDots) {
              const std::int64_t some = std::min(kMaxDots, shape.m - m);
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
