// Batch norm in training, persistent in shared memory (kernels/channel_norm_persistent.cuh):
// channels per chunk, and CTAs per group.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "cuda/engines/channel_norm_shape.hpp"

namespace ashlar::cuda {

// Type in which a prologue's values are stored in shared memory without loss: that of memory where
// the prologue only loads, else that of registers.
DType persistent_type(const PointwiseProgram& program, DType precision);

struct ChannelNormPersistent {
  static constexpr unsigned kThreads = 256;
  static constexpr std::int64_t kBlocks = 2;  // CTAs per SM

  ChannelNormShape shape;  // NHWC columns or NCHW lines
  DType x_type, dy_type;
  std::int64_t chunk_channels;  // channels per chunk
  std::int64_t group_blocks;    // CTAs per group
  std::int64_t groups, chunks;
  std::int64_t rows;                // rows of packets per chunk
  std::int64_t persistent_packets;  // persistent packets per thread
  std::int64_t packets;             // packets per thread
  std::int64_t unroll;
  bool distributed_reduce;  // each channel is finished by one CTA and published to the group

  ChannelNormPersistent(const ChannelNormShape& shape, DType precision, std::int64_t chunk_channels,
                        const DeviceProps& device);
  unsigned shared_bytes() const;
  // Workspace buffers: names and bytes.
  std::vector<std::pair<std::string, std::int64_t>> scratch(DType precision) const;
  struct Schedule {
    std::int64_t ahead;  // packets per thread of the next chunk prefetched to L2
    bool staggers;       // half of the groups start later, so that some read while others write
    bool async;          // cp.async to shared memory, bypassing registers
  };
  KernelDesign design(const Graph& graph, const Region& region, const Schedule& schedule) const;
  bool can_copy_async() const;
  // Candidate schedules, best first.
  std::vector<Schedule> schedule(bool has_other_tensors) const;
  bool can_stagger() const { return group_blocks > 1 && groups > 1 && chunks >= 5 * groups; }
  // Traffic relative to reading and writing every tensor once, and the fraction of bandwidth it
  // reaches.
  double traffic(const DeviceProps& device) const;
  double fraction(double bytes, bool async, const DeviceProps& device) const;

  // Candidates for channels per chunk, best first; empty where the norm is not supported.
  static std::vector<std::int64_t> choices(const ChannelNormShape& shape, DType precision,
                                           const DeviceProps& device);
  // The shape to traverse: small NCHW images as columns of channels and pixels.
  static ChannelNormShape traversed(const ChannelNormShape& shape);
};

}  // namespace ashlar::cuda
