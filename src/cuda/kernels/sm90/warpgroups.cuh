// What producer and consumer warpgroups share in every mainloop: register budgets, the order
// barrier of the ping-pong schedule, shared-memory descriptors. Requires the generated
// header (kConsumers, kPingPong, kBlockK, kElementBytes, kBlocksPerSm, kProducers in warpgroups,
// kComputes: whether producers compute operands; the instruction `Mma`).
#include "lib/pipeline.cuh"
#include "lib/ptx_cluster.cuh"
#include "lib/ptx_wgmma.cuh"

static const int kThreads = (kConsumers + kProducers) * 128;
// Warpgroups that share one output tile: all of them in the cooperative schedule, one in ping-pong.
static const int kTileWarpgroups = kPingPong ? 1 : kConsumers;
// Registers per thread at launch (the register file divided among the resident CTAs, in steps of
// 8), and after setmaxnreg for each role.
static const int kStartRegisters = 65536 / (kThreads * kBlocksPerSm) / 8 * 8;
static const int kProducerRegisters =
    !kComputes ? kTmaWarpRegisters : kProducers == 1 ? 104 : 72;
static const int kLeftRegisters =
    (kStartRegisters * (kConsumers + kProducers) - kProducerRegisters * kProducers) / kConsumers /
    8 * 8;
static const int kConsumerRegisters = kLeftRegisters < 240 ? kLeftRegisters : 240;

// Warpgroup index, broadcast so that the compiler sees a warp-uniform value and keeps descriptors
// in uniform registers.
__device__ inline int own_group() { return __shfl_sync(~0u, (int)threadIdx.x / 128, 0); }

// By all threads of the cluster: one thread of each CTA calls init(), which initialises its
// barriers, before any thread passes.
template <class Init>
__device__ inline void start_barriers(Init init) {
  if (threadIdx.x == 0) {
    init();
    fence_barriers();
  }
  if constexpr (kCluster > 1)
    cluster_sync_relaxed();
  else
    __syncthreads();
}

// Order barrier of the ping-pong schedule: consumer warpgroups with tiles of their own run their
// mainloops one after the other. An mbarrier distinguishes only the current phase from the previous
// one, so a warpgroup may wait on a full barrier only after the previous phase of that stage has
// completed.
struct OrderBarrier {
  int group, parity;

  __device__ void wait(Mbarrier* order) {
    if constexpr (!kPingPong) return;
    wait_for(order + group, parity);
    parity ^= 1;
  }
  // All stages of this warpgroup's tile have arrived.
  __device__ void arrive_next(Mbarrier* order) const {
    if constexpr (!kPingPong) return;
    if (threadIdx.x % 32 == 0) arrive(order + (group + 1) % kConsumers);
  }
};

// Strides for the descriptors of lib/ptx_wgmma.cuh. An M- or N-major tile is a stack of boxes, each
// 128 bytes of rows wide.
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
// Bytes from 64 rows of A to the next 64.
template <bool kTranspose>
__device__ inline int rows_step() {
  return kTranspose ? kBlockK * 128 : 64 * kBlockKBytes;
}
