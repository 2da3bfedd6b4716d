// GEMM without scratch: small blocks, packed on the stack.
#pragma once

#include "cpu/gemm/gemm_layout.hpp"
#include "cpu/gemm/gemm_pack.hpp"
#include "cpu/threads.hpp"

namespace ashlar::cpu {

inline constexpr std::int64_t kStackRows = 48, kStackK = 64;

template <class T>
void gemm_on_stack(const GemmShape& shape, const GemmKernel<T>& kernel, const GemmOperand<T>& a,
                   const GemmOperand<T>& b, const GemmSink<T>& sink) {
  const std::int64_t row_blocks = divide_up(shape.m, kStackRows),
                     panels = divide_up(shape.n, kernel.columns);
  const std::int64_t tasks = shape.batch * row_blocks * panels;
  const double flops =
      2.0 * static_cast<double>(shape.batch * shape.m) * static_cast<double>(shape.n * shape.k);
  parallel_for(tasks, tasks_worth_a_thread(tasks, flops),
               [&](std::int64_t from, std::int64_t to, int) {
                 alignas(64) T a_block[kStackRows * kStackK + kInterleaveSlack];
                 alignas(64) T b_panel[kWidestPanel * kStackK];
                 alignas(64) T c_block[kStackRows * kWidestPanel];
                 for (std::int64_t task = from; task < to; ++task) {
                   const Range rows(shape.m, task % row_blocks, row_blocks);
                   const std::int64_t n = task / row_blocks % panels * kernel.columns;
                   const std::int64_t batch = task / row_blocks / panels;
                   GemmMicroArgs<T> o;
                   o.columns = std::min(kernel.columns, shape.n - n);
                   o.b = b_panel;
                   o.b_row = o.c_row = kernel.columns;
                   std::int64_t start = 0;
                   do {  // runs once for K = 0 too: C is zero
                     o.k = std::min(kStackK, shape.k - start);
                     o.accumulate = start > 0;
                     pack_any(b, batch, n, o.columns, start, o.k, kernel.columns, b_panel);
                     for (std::int64_t i = 0; i < rows.size(); i += kernel.rows) {
                       o.rows = std::min(kernel.rows, rows.size() - i);
                       pack_any(a, batch, rows.begin + i, o.rows, start, o.k, kernel.rows, a_block);
                       o.a = a_block;
                       o.c = c_block + i * kernel.columns;
                       kernel.packed(o);
                     }
                     start += o.k;
                   } while (start < shape.k);
                   for (std::int64_t i = 0; i < rows.size(); ++i)
                     sink.row(batch, rows.begin + i, n, o.columns, c_block + i * kernel.columns);
                 }
               });
}

}  // namespace ashlar::cpu
