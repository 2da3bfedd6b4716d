// How rows are shared out among threads and blocks.
#pragma once

#include <vector>

#include "cuda/engines/row_norm/row_problem.hpp"
#include "plan/engine.hpp"

namespace ashlar::cuda {

struct RowLayout {
  int threads = 256;            // of a block
  int row_threads = 32;         // that share a row: a power of two below a warp, else whole warps
  int unroll = 1;               // rows a group of threads works on at once
  int blocks = 1;               // of a multiprocessor at a time
  bool persistent = false;      // blocks stay and take many tiles of rows
  int ahead = 0;                // the next tile is read meanwhile: 0 not, 1 to registers, 2 to L2
  bool shared_sums = false;     // sums over rows are in shared memory, not in registers
  bool hold_parameters = true;  // scale and bias stay in registers
  int vector = 1;               // elements of a thread that lie together
  int chunks = 0;  // vectors of a thread that stay in registers; 0: rows are read again

  int groups() const { return threads / row_threads; }
  int tile_rows() const { return groups() * unroll; }

  // Choices a saved plan keeps; the rest follows from the problem.
  std::vector<std::pair<std::string, std::int64_t>> knobs() const;
  static RowLayout from(const RowProblem& problem, const Config& config);
};

// Blocks of a set's rows.
struct RowGrid {
  std::int64_t blocks = 1, rows_per_block = 1, blocks_with_more = 0;
  bool whole_tiles = false;
};
RowGrid grid_of(const RowProblem& problem, const RowLayout& layout, const DeviceProps& device);

// Shared memory for one kind of sums over rows, in numbers: where each thread has its own, or where
// the groups of a block add theirs up.
std::int64_t shared_sums(const RowProblem& problem, const RowLayout& layout);
std::int64_t shared_bytes(const RowProblem& problem, const RowLayout& layout);

struct RowCandidate {
  RowLayout layout;
  double seconds;  // expected
};
// Best first.
std::vector<RowCandidate> row_candidates(const RowProblem& problem, const DeviceProps& device,
                                         double bytes);

}  // namespace ashlar::cuda
