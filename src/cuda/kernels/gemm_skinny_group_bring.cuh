// Products with few rows by warpgroups (gemm_skinny_group.cuh): what a stage of their ring holds,
// and the warp that fills it.
//
// A stage has a chunk: kChunk bytes of each of the block's rows, in pieces of 128 bytes swizzled by
// the copy engine; x of the same depths in the order of the weights (gemm_skinny_order.cuh), as the
// launch before has left it or other warps of the block put it; the scales of these weights.
#include "lib/ptx_launch.cuh"
#include "lib/ptx_tma.cuh"

static const int kWarps = kWarpsN * kWarpsK;
static const int kAllThreads = (kWarps + kHelpers) * 32;
static const int kPieces = kChunk / 128;
static const int kGroups = kScaled ? kChunkDepth / kScaleBlock : 0;
static const int kGroupBytes = kRows * (int)sizeof(typename S::Word);
static const int kFirstX = kRows * kChunk;
static const int kFirstScale = kFirstX + kImageBytes;
static const int kChunkBytes = kFirstScale + kGroups * kGroupBytes;
static const int kStageBytes = (kChunkBytes + 1023) / 1024 * 1024;
// That fill a stage, beside x where warps of the block put it in order.
static const int kBytesAsked = kChunkBytes - (kOrdersHere ? kImageBytes : 0);

// Warps that put x of a stage in order.
static const int kOrderers = !kOrdersHere                ? 0
                             : kOrderUnits < kOrderWarps ? kOrderUnits
                                                         : kOrderWarps;

// Of each stage: all of it has come, and is in order; everybody has read it; x has come, where it
// is put in order here.
struct Ring {
  uint8* memory;
  Mbarrier *full, *read, *brought;
};

// The chunks of a block in their order, each with its stage: those of some rows, then those of the
// next. All warps walk it, each for itself.
struct GroupWalk {
  int unit, every, first_chunk, chunks;
  int chunk, stage, parity;

  __device__ GroupWalk(const Args& args) : chunk(0), stage(0), parity(0) {
    const int rank = blockIdx.x % kClusterBlocks, all = (int)args.rounds;
    const int most = (all + kClusterBlocks - 1) / kClusterBlocks;
    unit = blockIdx.x / kClusterBlocks;
    every = gridDim.x / kClusterBlocks;
    first_chunk = rank * most;
    chunks = min(most, all - first_chunk);
  }
  __device__ bool has_more(const Args& args) const { return unit < (int)args.units; }
  __device__ void next_stage() {
    if (++stage < kStages) return;
    stage = 0;
    parity ^= 1;
  }
  __device__ void next() {
    next_stage();
    if (++chunk < chunks) return;
    chunk = 0;
    unit += every;
  }
};

// By a warp, all of it. Whole boxes count: zeros stand for what lies outside of the tensors.
__device__ inline void ask_for_weights(const Args& args, const GroupWalk& walk, const Ring& ring) {
  uint8* const to = ring.memory + walk.stage * kStageBytes;
  const int chunk = walk.first_chunk + walk.chunk, row = walk.unit * kRows;
  Mbarrier* const full = ring.full + walk.stage;
  if (threadIdx.x % 32 == 0) {
    arrive_and_expect(full, kBytesAsked);
    const int at[3] = {0, chunk * kPieces, row};
    load_box(to, args.map_weights, full, at);
  }
  __syncwarp();
}
// And of scales.
template <class SomeArgs>  // which need not have them
__device__ inline void ask_for_x(const SomeArgs& args, const GroupWalk& walk, const Ring& ring) {
  uint8* const to = ring.memory + walk.stage * kStageBytes;
  const int chunk = walk.first_chunk + walk.chunk, row = walk.unit * kRows;
  Mbarrier* const full = ring.full + walk.stage;
  ask_for_image(args, chunk, to + kFirstX, full, ring.brought + walk.stage);
  if constexpr (kScaled) {
    const int at_scales[2] = {row, chunk * kGroups};
    if (threadIdx.x % 32 == 0) load_box(to + kFirstScale, args.map_scales, full, at_scales);
    __syncwarp();
  }
}
// By the warps that put x in order, where there are any. Units of a stage, and then those of the
// next, are theirs in turn; of each stage always the same ones, as a warp that leaves out a round
// of a barrier could not tell it from the next.
__device__ inline void order_chunks(const Args& args, GroupWalk walk, const Ring& ring, int warp) {
  constexpr int kFurther = kOrderWarps - kOrderUnits % kOrderWarps;
  const StageLane lane;
#pragma unroll 1
  for (; walk.has_more(args); walk.next()) {
    const int first = (warp + walk.stage * kFurther) % kOrderWarps;
    if (first >= kOrderUnits) continue;
    wait_for(ring.brought + walk.stage, walk.parity);
    put_in_order(lane, first, ring.memory + walk.stage * kStageBytes + kFirstX);
    fence_shared_writes();
    arrive(ring.full + walk.stage);
  }
}
// After it has asked for all stages once.
__device__ inline void ask_for_chunks(const Args& args, GroupWalk walk, const Ring& ring) {
#pragma unroll 1
  for (; walk.has_more(args); walk.next()) {
    wait_for(ring.read + walk.stage, walk.parity ^ 1);
    ask_for_weights(args, walk, ring);
    ask_for_x(args, walk, ring);
  }
  let_next_launch_start();
}
