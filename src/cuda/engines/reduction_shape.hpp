// How a reduction lies in memory, and how it is shared out among threads.
#pragma once

#include "cuda/launch/kernel_design.hpp"

namespace ashlar::cuda {

// A cell is one result: the terms that fall on it lie along the reduced axes, cells along the kept
// ones. There is at least one axis of each kind.
struct ReductionShape {
  // Over [kept..., reduced...] with reduced elements next to each other; as `columns` over
  // [kept..., reduced..., kept], with neighbouring cells next to each other.
  PointwiseProgram x;
  // Over the kept axes: what becomes of the folded numbers of a cell, one program for each fold.
  std::vector<PointwiseProgram> results;
  // As kernels/reduction_modes.cuh numbers them; one for each fold.
  std::vector<int> modes;
  bool columns = false;
  int kept = 1, reduced = 1;  // axes
  std::int64_t cells = 1, terms = 1;
  std::int64_t width = 1;   // columns: cells of a row
  std::int64_t outers = 1;  // columns: kept rows
  std::int64_t line = 1;    // rows: terms that lie together
  int vector = 1;
  int loads = 1;            // as large as x
  bool is_strided = false;  // one of them does not lie along the last axis

  explicit ReductionShape(const Region& region);
  // Of a single line, those that no packet has.
  std::int64_t rest() const { return columns ? 0 : line % vector; }
  std::int64_t packets() const { return columns ? terms : terms / vector; }  // of a cell
  std::vector<const PointwiseProgram*> programs() const;
};

// The launch that reads x (kernels/reduction.cuh).
struct ReductionTiling {
  static constexpr std::int64_t kThreads = 256;
  std::int64_t unroll;  // packets on the way per thread
  // Threads that share a slice of a cell; columns: rows of threads that share one of `lanes`
  // packets next to each other.
  std::int64_t team = 1;
  std::int64_t lanes = 1, tiles = 1, single_lanes = 1, single_tiles = 1;
  std::int64_t slices = 1, slice_packets = 1;
  Grid grid, single_grid;

  // `blocks`: of a multiprocessor at once; `split`: whether blocks may share a cell.
  ReductionTiling(const ReductionShape& shape, std::int64_t unroll, std::int64_t blocks, bool split,
                  const DeviceProps& device);

 private:
  void partition_rows(const ReductionShape& shape, std::int64_t at_once, bool split);
  void partition_columns(const ReductionShape& shape, std::int64_t at_once, bool split);
  void split_terms(std::int64_t packets, std::int64_t blocks_of_slice, std::int64_t at_once);
};

}  // namespace ashlar::cuda
