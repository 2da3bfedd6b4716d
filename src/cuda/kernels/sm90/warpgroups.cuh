// What the warpgroups of a product share, however its factors come: registers, turns, descriptors.
// Comes after a kernel's head, which has kConsumers, kPingPong, kBlockK, kElementBytes,
// kBlocksPerSm, kProducers (warpgroups), kComputes (whether they compute), and after
// lib/ptx_wgmma_mma_async.cuh.
#include "lib/ptx_mbarrier.cuh"
#include "lib/ptx_wgmma.cuh"

static const int kThreads = (kConsumers + kProducers) * 128;
// Warpgroups that multiply the same tile.
static const int kTileWarpgroups = kPingPong ? 1 : kConsumers;
// Registers a thread has at the start (what a block of a processor can have, in steps of 8), and
// what the roles make of them.
static const int kStartRegisters = 65536 / (kThreads * kBlocksPerSm) / 8 * 8;
static const int kProducerRegisters =
    !kComputes ? kTmaWarpRegisters : kProducers == 1 ? 104 : 72;
static const int kLeftRegisters =
    (kStartRegisters * (kConsumers + kProducers) - kProducerRegisters * kProducers) / kConsumers /
    8 * 8;
static const int kConsumerRegisters = kLeftRegisters < 240 ? kLeftRegisters : 240;

// One of the kCount stages of a ring, and the parity of its round. Producer and consumers walk it
// in the same order, each for itself.
template <int kCount>
struct PipelineState {
  int stage, parity;

  __device__ void next() {
    if (++stage < kCount) return;
    stage = 0;
    parity ^= 1;
  }
  // `count` stages that others use.
  __device__ void skip(int count) {
    stage += count;
    parity ^= stage / kCount & 1;
    stage %= kCount;
  }
};

// Warpgroups with tiles of their own multiply in turns. A barrier tells apart this round of a stage
// and the one before it, no more: who waits for a stage must know that the round before has come.
struct OrderBarrier {
  int group, parity;

  __device__ void wait(Mbarrier* order) {
    if constexpr (!kPingPong) return;
    wait_for(order + group, parity);
    parity ^= 1;
  }
  // All stages of the group's tile have come.
  __device__ void arrive_next(Mbarrier* order) const {
    if constexpr (!kPingPong) return;
    if (threadIdx.x % 32 == 0) arrive(order + (group + 1) % kConsumers);
  }
};

// Distances of lib/ptx_wgmma.cuh's descriptors. A tile with contiguous rows is a stack of boxes of
// 128 bytes of rows.
static const int kBlockKBytes = kBlockK * kElementBytes;
static const int kInstructionK = 32 / kElementBytes;
template <bool kTranspose>
__device__ inline uint64 tile_descriptor(const uint8* tile) {
  if constexpr (kTranspose)
    return smem_descriptor<128>(tile, kBlockK * 128, 1024);
  else
    return smem_descriptor<kBlockKBytes>(tile, 0, 8 * kBlockKBytes);
}
template <bool kTranspose>
__device__ inline int k_step() {
  return kTranspose ? kInstructionK * 128 : 32;
}
// From 64 rows of A to the next.
template <bool kTranspose>
__device__ inline int rows_step() {
  return kTranspose ? kBlockK * 128 : 64 * kBlockKBytes;
}
