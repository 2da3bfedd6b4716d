// A dense matrix [positions, channels] for per-channel statistics of channels-last tensors. It is
// split into chunks for threads, and chunks into blocks of whole rows that stay in L2.
#pragma once

#include <algorithm>

#include <ashlar/dims.hpp>
#include <vector>

#include "plan/merge_axes.hpp"

namespace ashlar::cpu {

inline constexpr std::int64_t kColumnsBlock = 8192;  // maximum elements of a block
inline constexpr std::int64_t kMaxColumns = 2048;

struct Columns {
  std::int64_t width = 0;  // channels; 0: this traversal does not apply to the tensor
  std::int64_t rows = 0;
  // depends on the shape alone, so results do not depend on the thread count
  std::int64_t chunks = 0;
  std::int64_t block_rows = 0;

  // For one statistic per index of `axis`.
  static Columns of(const Dims& space, const Dims& statistics, int axis) {
    constexpr std::int64_t kChunks = 32;
    const std::int64_t width = space[axis], elements = element_count(space);
    if (width < 2 || width > kMaxColumns || statistics[axis] != width || elements == 0 ||
        element_count(statistics) != width)
      return {};
    Columns columns;
    columns.width = width;
    columns.rows = elements / width;
    columns.block_rows = kColumnsBlock / width;
    columns.chunks = std::clamp<std::int64_t>(columns.rows / columns.block_rows, 1, kChunks);
    return columns;
  }

  std::int64_t first_row(std::int64_t chunk) const { return rows * chunk / chunks; }
  std::int64_t rows_of(std::int64_t chunk) const { return first_row(chunk + 1) - first_row(chunk); }

  // Calls body(first row, rows) for the blocks of a chunk.
  template <class Body>
  void for_blocks(std::int64_t chunk, Body&& body) const {
    const std::int64_t end = first_row(chunk + 1);
    for (std::int64_t row = first_row(chunk); row < end; row += block_rows)
      body(row, std::min(block_rows, end - row));
  }
  template <class Body>
  void for_blocks_backwards(std::int64_t chunk, Body&& body) const {
    const std::int64_t begin = first_row(chunk),
                       blocks = (rows_of(chunk) + block_rows - 1) / block_rows;
    for (std::int64_t block = blocks; block-- > 0;) {
      const std::int64_t row = begin + block * block_rows;
      body(row, std::min(block_rows, first_row(chunk + 1) - row));
    }
  }
};

// Merges the mean and sum of squared deviations of `seen` values per column with those of `more`
// values (Chan, Golub and LeVeque). No cancellation occurs.
template <class T, class Mean, class Squares>
void merge_moments(std::int64_t seen, T* means, T* squares, std::int64_t more, const Mean* mean,
                   const Squares* square, std::int64_t width) {
  const T share = static_cast<T>(more) / static_cast<T>(seen + more);
  const T spread = static_cast<T>(seen) * share;
  for (std::int64_t i = 0; i < width; ++i) {
    const T delta = static_cast<T>(mean[i]) - means[i];
    means[i] += delta * share;
    squares[i] += static_cast<T>(square[i]) + delta * delta * spread;
  }
}

}  // namespace ashlar::cpu
