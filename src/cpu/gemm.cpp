#include "cpu/gemm.hpp"

#include <algorithm>
#include <cstring>

#include "cpu/threads.hpp"

namespace ashlar::cpu {

namespace {

constexpr std::int64_t kRowPiece = 512;  // elements of an operand's row fetched at once
constexpr std::int64_t kStackElements = 48 * 128 + 64 * 128 + 48 * 64;  // see stack_blocks()
constexpr double kFlopsWorthAThread = 200e3;

// Panels of `width` indices: element (index i, depth l) at panel[i / width][l * width + i % width].
// The last panel is filled up with zeros.
template <class T>
void pack(const GemmOperand<T>& operand, std::int64_t width, std::int64_t batch, std::int64_t index,
          std::int64_t indices, std::int64_t depth, std::int64_t depths, T* destination) {
  alignas(64) T piece[kRowPiece];
  const std::int64_t padded = divide_up(indices, width) * width;
  if (operand.along_depth()) {
    for (std::int64_t i = 0; i < padded; ++i) {
      T* column = destination + i / width * width * depths + i % width;
      if (i >= indices) {
        for (std::int64_t l = 0; l < depths; ++l) column[l * width] = T{0};
        continue;
      }
      for (std::int64_t first = 0; first < depths; first += kRowPiece) {
        const std::int64_t length = std::min(kRowPiece, depths - first);
        operand.row(batch, index + i, depth + first, length, piece);
        T* target = column + first * width;
        for (std::int64_t l = 0; l < length; ++l) target[l * width] = piece[l];
      }
    }
    return;
  }
  const std::int64_t step = kRowPiece / width * width;
  for (std::int64_t l = 0; l < depths; ++l)
    for (std::int64_t first = 0; first < indices; first += step) {
      const std::int64_t length = std::min(step, indices - first);
      operand.row(batch, depth + l, index + first, length, piece);
      const std::int64_t filled = divide_up(length, width) * width;
      std::fill(piece + length, piece + filled, T{0});
      for (std::int64_t i = 0; i < filled; i += width)
        std::memcpy(destination + (first + i) * depths + l * width, piece + i,
                    static_cast<std::size_t>(width) * sizeof(T));
    }
}

// The buffers of one thread.
template <class T>
struct Buffers {
  T* a;
  T* b;
  T* c;
};

// One block of C at a time.
template <class T>
class BlockProduct {
 public:
  BlockProduct(const GemmShape& shape, const GemmBlocks& blocks, const GemmKernel<T>& kernel,
               const GemmOperand<T>& a, const GemmOperand<T>& b, Buffers<T> buffers)
      : shape_(shape), blocks_(blocks), kernel_(kernel), a_(a), b_(b), buffers_(buffers) {}

  // C's block from depth `begin` to `end`, left in the buffer with rows of blocks.columns elements.
  void run(std::int64_t batch, std::int64_t m, std::int64_t n, std::int64_t begin,
           std::int64_t end) {
    const std::int64_t rows = std::min(blocks_.rows, shape_.m - m);
    const std::int64_t columns = std::min(blocks_.columns, shape_.n - n);
    const bool same_batch = batch == kept_batch_ || b_.same_for_all_batches();
    const bool b_is_there = blocks_.keep_b && same_batch && n == kept_n_ && begin == kept_begin_;
    if (begin == end) std::fill_n(buffers_.c, rows * blocks_.columns, T{0});
    for (std::int64_t depth = begin; depth < end; depth += blocks_.depth) {
      const std::int64_t depths = std::min(blocks_.depth, end - depth);
      T* packed_b = buffers_.b + (blocks_.keep_b ? (depth - begin) * padded_columns(columns) : 0);
      if (!b_is_there) pack(b_, kernel_.columns, batch, n, columns, depth, depths, packed_b);
      pack(a_, kernel_.rows, batch, m, rows, depth, depths, buffers_.a);
      multiply(rows, columns, depths, packed_b, depth > begin);
    }
    kept_batch_ = batch;
    kept_n_ = n;
    kept_begin_ = begin;
  }

 private:
  std::int64_t padded_columns(std::int64_t columns) const {
    return divide_up(columns, kernel_.columns) * kernel_.columns;
  }

  void multiply(std::int64_t rows, std::int64_t columns, std::int64_t depths, const T* packed_b,
                bool accumulate) const {
    for (std::int64_t j = 0; j < columns; j += kernel_.columns)
      for (std::int64_t i = 0; i < rows; i += kernel_.rows)
        kernel_.multiply(depths, std::min(kernel_.rows, rows - i), buffers_.a + i * depths,
                         packed_b + j * depths, buffers_.c + i * blocks_.columns + j,
                         blocks_.columns, accumulate);
  }

  const GemmShape& shape_;
  const GemmBlocks& blocks_;
  const GemmKernel<T>& kernel_;
  const GemmOperand<T>& a_;
  const GemmOperand<T>& b_;
  Buffers<T> buffers_;
  std::int64_t kept_batch_ = -1, kept_n_ = -1, kept_begin_ = -1;  // what buffers_.b holds
};

// Where a task stands in the product. Row blocks vary fastest, so that a thread's B stays packed.
struct Task {
  std::int64_t split, batch, m, n;

  Task(std::int64_t number, const GemmShape& shape, const GemmBlocks& blocks) {
    const std::int64_t row_blocks = divide_up(shape.m, blocks.rows);
    const std::int64_t column_blocks = divide_up(shape.n, blocks.columns);
    m = number % row_blocks * blocks.rows;
    number /= row_blocks;
    n = number % column_blocks * blocks.columns;
    number /= column_blocks;
    batch = number % shape.batch;
    split = number / shape.batch;
  }
};

// Adds the parts of k in order and hands the rows on.
template <class T>
void finish_splits(const GemmShape& shape, const GemmBlocks& blocks, const GemmSink<T>& sink,
                   T* partial) {
  const std::int64_t part = shape.batch * shape.m * shape.n;
  parallel_for(shape.batch * shape.m, 1, [&](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t row = begin; row < end; ++row) {
      T* total = partial + row * shape.n;
      for (std::int64_t split = 1; split < blocks.splits; ++split) {
        const T* addend = total + split * part;
        for (std::int64_t j = 0; j < shape.n; ++j) total[j] += addend[j];
      }
      sink.row(row / shape.m, row % shape.m, 0, shape.n, total);
    }
  });
}

}  // namespace

template <class T>
void gemm(const GemmShape& shape, const GemmBlocks& blocks, const GemmKernel<T>& kernel,
          const GemmOperand<T>& a, const GemmOperand<T>& b, const GemmSink<T>& sink, T* scratch) {
  if (shape.batch == 0 || shape.m == 0 || shape.n == 0) return;
  const std::int64_t tasks = blocks.splits * shape.batch * divide_up(shape.m, blocks.rows) *
                             divide_up(shape.n, blocks.columns);
  const std::int64_t task_depth = divide_up(shape.k, blocks.splits);
  const double task_flops = 2.0 * static_cast<double>(std::min(blocks.rows, shape.m)) *
                            static_cast<double>(std::min(blocks.columns, shape.n)) *
                            static_cast<double>(std::max<std::int64_t>(task_depth, 1));
  auto grain = static_cast<std::int64_t>(kFlopsWorthAThread / task_flops) + 1;
  const bool on_stack = blocks.threads == 0;
  // No more threads than have scratch.
  if (!on_stack) grain = std::max(grain, divide_up(tasks, blocks.threads));

  const std::int64_t a_elements = blocks.rows * blocks.depth;
  const std::int64_t b_elements = blocks.columns * (blocks.keep_b ? shape.k : blocks.depth);
  const std::int64_t line = kWorkspaceAlignment / static_cast<std::int64_t>(sizeof(T));
  const std::int64_t per_thread =
      round_up(a_elements + b_elements + blocks.rows * blocks.columns, line);
  T* partial = scratch + blocks.threads * per_thread;

  const auto run_tasks = [&](std::int64_t begin, std::int64_t end, T* memory) {
    BlockProduct<T> product(shape, blocks, kernel, a, b,
                            {memory, memory + a_elements, memory + a_elements + b_elements});
    T* c = memory + a_elements + b_elements;
    for (std::int64_t number = begin; number < end; ++number) {
      const Task task(number, shape, blocks);
      product.run(task.batch, task.m, task.n, shape.k * task.split / blocks.splits,
                  shape.k * (task.split + 1) / blocks.splits);
      const std::int64_t rows = std::min(blocks.rows, shape.m - task.m);
      const std::int64_t columns = std::min(blocks.columns, shape.n - task.n);
      for (std::int64_t i = 0; i < rows; ++i) {
        T* values = c + i * blocks.columns;
        if (blocks.splits == 1) {
          sink.row(task.batch, task.m + i, task.n, columns, values);
        } else {
          const std::int64_t row = (task.split * shape.batch + task.batch) * shape.m + task.m + i;
          std::copy_n(values, columns, partial + row * shape.n + task.n);
        }
      }
    }
  };
  if (on_stack) {
    parallel_for(tasks, grain, [&](std::int64_t begin, std::int64_t end, int) {
      alignas(64) T memory[kStackElements];
      run_tasks(begin, end, memory);
    });
  } else {
    parallel_for(tasks, grain, [&](std::int64_t begin, std::int64_t end, int thread) {
      run_tasks(begin, end, scratch + thread * per_thread);
    });
  }
  if (blocks.splits > 1) finish_splits(shape, blocks, sink, partial);
}

template void gemm<float>(const GemmShape&, const GemmBlocks&, const GemmKernel<float>&,
                          const GemmOperand<float>&, const GemmOperand<float>&,
                          const GemmSink<float>&, float*);
template void gemm<double>(const GemmShape&, const GemmBlocks&, const GemmKernel<double>&,
                           const GemmOperand<double>&, const GemmOperand<double>&,
                           const GemmSink<double>&, double*);
template void gemm<std::int32_t>(const GemmShape&, const GemmBlocks&,
                                 const GemmKernel<std::int32_t>&, const GemmOperand<std::int32_t>&,
                                 const GemmOperand<std::int32_t>&, const GemmSink<std::int32_t>&,
                                 std::int32_t*);

}  // namespace ashlar::cpu
