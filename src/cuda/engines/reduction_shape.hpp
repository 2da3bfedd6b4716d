// Memory layout of a reduction, and its tiling over threads.
#pragma once

#include "cuda/launch/kernel_design.hpp"

namespace ashlar::cuda {

// A cell is one output: its terms are along the reduced axes, cells along the kept ones. There is
// at least one axis of each kind.
struct ReductionShape {
  // Over [kept..., reduced...], the reduced elements contiguous; with `columns` over [kept...,
  // reduced..., kept], neighbouring cells contiguous.
  PointwiseProgram x;
  // Epilogues over the kept axes, one program per fold.
  std::vector<PointwiseProgram> results;
  // Modes of kernels/reduction_modes.cuh, one per fold.
  std::vector<int> modes;
  bool columns = false;
  int kept = 1, reduced = 1;  // axes
  std::int64_t cells = 1, terms = 1;
  std::int64_t width = 1;   // columns: cells per row
  std::int64_t outers = 1;  // columns: number of kept rows
  std::int64_t line = 1;    // rows: contiguous terms
  int vector = 1;
  int loads = 1;            // loads with an element of their own per element of x
  bool is_strided = false;  // one of them is not contiguous along the last axis

  explicit ReductionShape(const Region& region);
  // Terms behind the last whole packet of a single line.
  std::int64_t rest() const { return columns ? 0 : line % vector; }
  std::int64_t packets() const { return columns ? terms : terms / vector; }  // of a cell
  std::vector<const PointwiseProgram*> programs() const;
};

// Tiling of the launch that reads x (kernels/reduction.cuh).
struct ReductionTiling {
  static constexpr std::int64_t kThreads = 256;
  std::int64_t unroll;  // packets in flight per thread
  // Threads per slice of a cell; columns: rows of threads that share one of `lanes` contiguous
  // packets.
  std::int64_t team = 1;
  std::int64_t lanes = 1, tiles = 1, single_lanes = 1, single_tiles = 1;
  std::int64_t slices = 1, slice_packets = 1;
  Grid grid, single_grid;

  // `blocks`: resident CTAs per SM; `split`: whether several CTAs may share a cell.
  ReductionTiling(const ReductionShape& shape, std::int64_t unroll, std::int64_t blocks, bool split,
                  const DeviceProps& device);

 private:
  void partition_rows(const ReductionShape& shape, std::int64_t at_once, bool split);
  void partition_columns(const ReductionShape& shape, std::int64_t at_once, bool split);
  void split_terms(std::int64_t packets, std::int64_t blocks_of_slice, std::int64_t at_once);
};

}  // namespace ashlar::cuda
