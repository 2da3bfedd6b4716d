// How a batch, instance or group norm lies in memory, and how it is cut into slices.
#pragma once

#include <optional>

#include "cuda/launch/kernel_design.hpp"
#include "graph/norm_shapes.hpp"

namespace ashlar::cuda {

struct ChannelNormShape {
  const NormForward* forward;
  const NormBackward* backward;
  bool given;  // the statistics are operands
  // Over [rows..., channels] when `columns`, else over [N, channels, pixels].
  PointwiseProgram x, dy, result;
  bool columns;
  bool simple = true;                            // false: the pixels do not lie as one axis
  std::int64_t outers, channels, groups, width;  // width: channels of a group
  std::int64_t pixels;                           // of a cell
  int vector, max_vector;
  std::int64_t spread = 1;  // columns of a channel, next to each other

  explicit ChannelNormShape(const Region& region);
  // Channels and pixels that lie as one axis, as columns of images: packets may begin in one
  // channel and end in the next.
  std::optional<ChannelNormShape> joined() const;
  // Packets per thread where a block holds all elements of a statistic (instance and group norm,
  // forward); 0: it does not.
  std::int64_t persistent_packets() const;
  std::vector<PointwiseProgram*> programs();
  std::vector<const PointwiseProgram*> programs() const;
};

// The walk of one launch over all elements (kernels/channel_norm.cuh).
struct ChannelNormTiling {
  static constexpr unsigned kThreads = 256;
  int team;    // threads of a cell, pixels varying fastest
  int unroll;  // packets on the way per thread
  std::int64_t lanes, single_lanes;
  std::int64_t slices, slice_pixels;
  Grid grid, single_grid;

  // `blocks`: of a multiprocessor at once; `waves`: how often, about.
  ChannelNormTiling(const ChannelNormShape& shape, int unroll, std::int64_t blocks,
                    std::int64_t waves, const DeviceProps& device);
};

}  // namespace ashlar::cuda
