// Memory layout of a batch, instance or group norm, and its split into slices.
#pragma once

#include <optional>

#include "cuda/launch/kernel_design.hpp"
#include "graph/norm_shapes.hpp"

namespace ashlar::cuda {

struct ChannelNormShape {
  const NormForward* forward;
  const NormBackward* backward;
  bool given;  // statistics are operands
  // Over [rows..., channels] when `columns`, else over [N, channels, pixels].
  PointwiseProgram x, dy, result;
  bool columns;
  bool simple = true;                            // false: the pixels do not merge into one axis
  std::int64_t outers, channels, groups, width;  // width: channels of a group
  std::int64_t pixels;                           // elements per cell
  int vector, max_vector;
  std::int64_t spread = 1;  // contiguous columns per channel

  explicit ChannelNormShape(const Region& region);
  // Channels and pixels merged into one axis (columns): packets may cross channel boundaries.
  std::optional<ChannelNormShape> joined() const;
  // Packets per thread where one CTA holds a whole statistic in registers (instance and group norm,
  // forward); 0: it does not fit.
  std::int64_t persistent_packets() const;
  std::vector<PointwiseProgram*> programs();
  std::vector<const PointwiseProgram*> programs() const;
};

// Tiling of one launch over all elements (kernels/channel_norm.cuh).
struct ChannelNormTiling {
  static constexpr unsigned kThreads = 256;
  int team;    // NCHW: threads per cell
  int unroll;  // packets in flight per thread
  std::int64_t lanes, single_lanes;
  std::int64_t slices, slice_pixels;
  Grid grid, single_grid;

  // `blocks`: resident CTAs per SM; `waves`: approximate number of waves.
  ChannelNormTiling(const ChannelNormShape& shape, int unroll, std::int64_t blocks,
                    std::int64_t waves, const DeviceProps& device);
};

}  // namespace ashlar::cuda
