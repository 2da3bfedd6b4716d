// What the two scatter kernels share. Every element of y belongs to one task, which combines its
// contributions in row-major order of source: results do not depend on the number of threads.
#pragma once

#include "cpu/engines/build.hpp"
#include "cpu/engines/index_rows.hpp"
#include "cpu/engines/pooling.hpp"
#include "cpu/store_to.hpp"

namespace ashlar::cpu {

struct ScatterShape {
  Scatter op;
  Dims y, source;
  View index;
  SelectedAxes axes;
  IndexRows positions;
  std::int64_t extent;  // of y along the axis

  explicit ScatterShape(const Region& region)
      : op(*region.anchor_as<Scatter>()),
        y(region.epilogue.space),
        source(region.prologues[Scatter::source].space),
        index(region.prologues[Scatter::index].steps[0].view),
        axes(op, index.dims.rank()),
        extent(y[axes.axis]) {
    positions = IndexRows(index.dtype, extent, false);
  }
};

// Slices, as rows that do not run along the axis: contributions sorted by slice.
std::unique_ptr<Kernel> build_scatter_slices(const Region& region, const DeviceProps& device);
// Anything else: lines along the axis, accumulated in scratch memory.
std::unique_ptr<Kernel> build_scatter_lines(const Region& region, const DeviceProps& device);

}  // namespace ashlar::cpu
