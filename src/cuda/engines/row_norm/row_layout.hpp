// Launch shape of the row kernels: how rows map to threads, CTAs and clusters.
#pragma once

#include <vector>

#include "cuda/engines/row_norm/row_problem.hpp"
#include "plan/engine.hpp"

namespace ashlar::cuda {

struct RowLayout {
  int threads = 256;         // per CTA
  int row_threads = 32;      // threads per row: a power of two below a warp, else whole warps
  int slices = 1;            // CTAs of a cluster that split a row
  int unroll = 1;            // rows per group of threads at a time
  int blocks = 1;            // resident CTAs per SM
  bool persistent = false;   // persistent CTAs loop over tiles of rows
  int ahead = 0;             // prefetch of tiles: 0 none, to 1 registers, 2 L2, 3 kPipeline
  int stages = 0;            // of the cp.async pipeline in shared memory
  bool shared_sums = false;  // column sums live in shared memory, not in registers
  bool parameters_in_registers = true;  // scale and bias live in registers
  int vector = 1;                       // contiguous elements per thread
  int chunks = 0;  // vectors per thread that live in registers; 0: rows are read again

  static constexpr int kPipeline = 3;  // value of `ahead`: cp.async pipeline
  int groups() const { return threads / row_threads; }
  int tile_rows() const { return groups() * unroll; }

  // Knobs stored in a saved plan; the rest follows from the problem.
  std::vector<std::pair<std::string, std::int64_t>> knobs() const;
  static RowLayout from(const RowProblem& problem, const Config& config);
};

// Contiguous elements per thread: 16 bytes of the narrowest type along the rows, at most 8.
int vector_of(const RowProblem& problem);

// Whether the fused epilogue is so large that instructions may take longer than memory traffic.
bool is_compute_bound(const RowProblem& problem);
// Whether the epilogue is a rolled loop over chunks: unrolled copies of a large epilogue do not fit
// the instruction cache. Nothing may then be indexed in registers by chunk.
bool has_rolled_epilogue(const RowProblem& problem, const RowLayout& layout);
// Whether scale and bias are converted once per CTA into shared memory: unpacking them again for
// every row is a measurable share of the instructions.
bool has_shared_parameters(const RowProblem& problem, const RowLayout& layout);

// The tiles of a parameter set's rows are dealt round-robin to `pieces`: CTAs, or clusters.
struct RowGrid {
  std::int64_t pieces = 1;
  bool whole_tiles = false;  // no partial tile
};
RowGrid grid_of(const RowProblem& problem, const RowLayout& layout, const DeviceProps& device);

// Bytes per element of an operand that is kept raw, in registers or in the pipeline.
std::int64_t staged_bytes(const RowProblem& problem, const PointwiseProgram& program);
// Bytes of a pipeline stage (one tile of rows).
std::int64_t stage_bytes(const RowProblem& problem, const RowLayout& layout);
// Column sums of one kind, padded for columns past the end of the row.
std::int64_t sums_per_row(const RowProblem& problem, const RowLayout& layout);
// Dynamic shared memory: column sums, then the pipeline, then parameters.
struct SharedBytes {
  // Elements per kind of column sums: one per thread's column, or one copy per group where groups
  // merge theirs.
  std::int64_t sums_stride = 0;
  std::int64_t pipeline = 0;    // byte offset
  std::int64_t parameters = 0;  // byte offset
  std::int64_t all = 0;
};
SharedBytes shared_bytes(const RowProblem& problem, const RowLayout& layout);

// Layouts that fit the device, most promising first. Where none does, a layout that reads rows
// again.
std::vector<RowLayout> all_row_layouts(const RowProblem& problem, const DeviceProps& device);

struct RowCandidate {
  RowLayout layout;
  double seconds;  // expected
};
// The configurations offered to the planner, best first. `bytes`: minimum traffic of the region.
std::vector<RowCandidate> row_candidates(const RowProblem& problem, const DeviceProps& device,
                                         double bytes);

}  // namespace ashlar::cuda
