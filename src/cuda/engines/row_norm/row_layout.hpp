// How rows are shared out among threads and blocks.
#pragma once

#include <vector>

#include "cuda/engines/row_norm/row_problem.hpp"
#include "plan/engine.hpp"

namespace ashlar::cuda {

struct RowLayout {
  int threads = 256;        // of a block
  int row_threads = 32;     // that share a row: a power of two below a warp, else whole warps
  int slices = 1;           // blocks of a cluster that share a row
  int unroll = 1;           // rows a group of threads works on at once
  int blocks = 1;           // of a multiprocessor at a time
  bool persistent = false;  // blocks stay and take many tiles of rows
  int ahead = 0;            // later tiles are read meanwhile: 0 not; the next to 1 registers, 2 L2;
  int stages = 0;           // 3: so many to a ring in shared memory
  bool shared_sums = false;             // sums over rows are in shared memory, not in registers
  bool parameters_in_registers = true;  // scale and bias stay in registers
  int vector = 1;                       // elements of a thread that lie together
  int chunks = 0;  // vectors of a thread that stay in registers; 0: rows are read again

  static constexpr int kPipeline = 3;  // of `ahead`
  int groups() const { return threads / row_threads; }
  int tile_rows() const { return groups() * unroll; }

  // Choices a saved plan keeps; the rest follows from the problem.
  std::vector<std::pair<std::string, std::int64_t>> knobs() const;
  static RowLayout from(const RowProblem& problem, const Config& config);
};

// Elements of a thread that lie together: 16 bytes of the narrowest type along the rows, at most 8.
int vector_of(const RowProblem& problem);

// Whether so much is fused after the operation that instructions may take longer than memory.
bool is_compute_bound(const RowProblem& problem);
// Whether results are computed chunk by chunk in a loop: copies of much work for every chunk do not
// fit the caches of instructions. Nothing may be in registers by its chunk then.
bool has_rolled_epilogue(const RowProblem& problem, const RowLayout& layout);
// Whether scale and bias are in shared memory as numbers, made once for the rows of a block: taking
// them out of packed words again for every row is a part of the instructions.
bool has_shared_parameters(const RowProblem& problem, const RowLayout& layout);

// The tiles of a set's rows are taken in turn by so many pieces: one block each, or the blocks of a
// cluster.
struct RowGrid {
  std::int64_t pieces = 1;
  bool whole_tiles = false;  // no tile ends early
};
RowGrid grid_of(const RowProblem& problem, const RowLayout& layout, const DeviceProps& device);

// Bytes of an element of an operand that threads hold as memory has them, or that lie in the ring.
std::int64_t staged_bytes(const RowProblem& problem, const PointwiseProgram& program);
// Of a tile in the ring.
std::int64_t stage_bytes(const RowProblem& problem, const RowLayout& layout);
// Sums over rows of one kind, with some for columns that are past the end of the row.
std::int64_t sums_per_row(const RowProblem& problem, const RowLayout& layout);
// Dynamic shared memory: sums over rows, then the ring, then parameters.
struct SharedBytes {
  // For one kind of sums, in numbers: where each thread has its own, or where the groups of a block
  // add theirs up.
  std::int64_t sums_stride = 0;
  std::int64_t pipeline = 0;    // where it begins
  std::int64_t parameters = 0;  // where they begin
  std::int64_t all = 0;
};
SharedBytes shared_bytes(const RowProblem& problem, const RowLayout& layout);

// What fits the device and may be worth a try; the more promising first. Where nothing does, a
// layout that reads rows again.
std::vector<RowLayout> all_row_layouts(const RowProblem& problem, const DeviceProps& device);

struct RowCandidate {
  RowLayout layout;
  double seconds;  // expected
};
// The few that are offered, best first. `bytes`: what must be read and written.
std::vector<RowCandidate> row_candidates(const RowProblem& problem, const DeviceProps& device,
                                         double bytes);

}  // namespace ashlar::cuda
