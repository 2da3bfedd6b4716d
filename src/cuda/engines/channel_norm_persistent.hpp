// Batch norm in training that keeps what it reads on the chip
// (kernels/channel_norm_persistent.cuh): which channels a group of blocks takes at a time, and how
// many blocks it has.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "cuda/engines/channel_norm_shape.hpp"

namespace ashlar::cuda {

// Type in which values of a prologue are kept without loss: that of memory where it hands on what
// memory has, else that of registers.
DType persistent_type(const PointwiseProgram& program, DType precision);

struct ChannelNormPersistent {
  static constexpr unsigned kThreads = 256;
  static constexpr std::int64_t kBlocks = 2;  // of a multiprocessor at once

  ChannelNormShape shape;  // as columns or as lines
  DType x_type, dy_type;
  std::int64_t chunk_channels;  // channels of a group at a time
  std::int64_t group_blocks;    // blocks of a group
  std::int64_t groups, chunks;
  std::int64_t rows;                // of packets, of a channel
  std::int64_t persistent_packets;  // packets per thread
  std::int64_t packets;             // of a thread
  std::int64_t unroll;
  bool distributed_reduce;  // the sums of a channel are finished by one block for all

  ChannelNormPersistent(const ChannelNormShape& shape, DType precision, std::int64_t chunk_channels,
                        const DeviceProps& device);
  unsigned shared_bytes() const;
  // Names and bytes.
  std::vector<std::pair<std::string, std::int64_t>> scratch(DType precision) const;
  struct Schedule {
    std::int64_t ahead;  // packets per thread of the next chunk on their way to L2 meanwhile
    bool staggers;       // half of the groups begin later, so that some read while others write
    bool async;          // packets go to shared memory without passing registers
  };
  KernelDesign design(const Graph& graph, const Region& region, const Schedule& schedule) const;
  bool can_copy_async() const;
  // Best first.
  std::vector<Schedule> schedule(bool has_other_tensors) const;
  bool can_stagger() const { return group_blocks > 1 && groups > 1 && chunks >= 5 * groups; }
  // Bytes in units of what every tensor takes once, and the share of memory's speed they move with.
  double traffic(const DeviceProps& device) const;
  double fraction(double bytes, bool async, const DeviceProps& device) const;

  // Channels to take at a time, best first; none where this is not for the norm.
  static std::vector<std::int64_t> choices(const ChannelNormShape& shape, DType precision,
                                           const DeviceProps& device);
  // The shape that is walked: of small images, columns of channels and pixels.
  static ChannelNormShape traversed(const ChannelNormShape& shape);
};

}  // namespace ashlar::cuda
