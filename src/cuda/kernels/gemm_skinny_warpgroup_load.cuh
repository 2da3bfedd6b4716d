// Products with few rows by warpgroups (gemm_skinny_warpgroup.cuh): what a stage of their ring holds,
// and the warp that fills it.
//
// A stage has a chunk: kChunk bytes of each of the block's rows, in pieces of 128 bytes swizzled by
// the copy engine; x of the same depths in the order of the weights (gemm_skinny_repack.cuh), as the
// launch before has left it or other warps of the block put it; the scales of these weights.
#include "lib/ptx_grid_dependency.cuh"
#include "lib/ptx_tma.cuh"

static const int kWarps = kWarpsN * kWarpsK;
static const int kAllThreads = (kWarps + kHelpers) * 32;
static const int kPieces = kChunk / 128;
static const int kGroups = kScaled ? kChunkK / kScaleBlock : 0;
static const int kGroupBytes = kRows * (int)sizeof(typename S::Word);
static const int kFirstX = kRows * kChunk;
static const int kFirstScale = kFirstX + kPackedXBytes;
static const int kChunkBytes = kFirstScale + kGroups * kGroupBytes;
static const int kStageBytes = (kChunkBytes + 1023) / 1024 * 1024;
// That fill a stage, beside x where warps of the block put it in order.
static const int kTmaBytes = kChunkBytes - (kRepacksInCta ? kPackedXBytes : 0);

// Warps that put x of a stage in order.
static const int kArrivingRepackWarps = !kRepacksInCta                ? 0
                             : kRepackUnits < kRepackWarps ? kRepackUnits
                                                         : kRepackWarps;

// Of each stage: all of it has come, and is in order; everybody has read it; x has come, where it
// is put in order here.
struct Pipeline {
  uint8* memory;
  Mbarrier *full, *read, *x_full;
};

// The chunks of a block in their order, each with its stage: those of some rows, then those of the
// next. All warps walk it, each for itself.
struct ChunkIterator {
  int unit, every, first_chunk, chunks;
  int chunk, stage, parity;

  __device__ ChunkIterator(const Args& args) : chunk(0), stage(0), parity(0) {
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
__device__ inline void load_weights(const Args& args, const ChunkIterator& iter, const Pipeline& pipeline) {
  uint8* const to = pipeline.memory + iter.stage * kStageBytes;
  const int chunk = iter.first_chunk + iter.chunk, row = iter.unit * kRows;
  Mbarrier* const full = pipeline.full + iter.stage;
  if (threadIdx.x % 32 == 0) {
    arrive_and_expect_tx(full, kTmaBytes);
    const int at[3] = {0, chunk * kPieces, row};
    load_box(to, args.map_weights, full, at);
  }
  __syncwarp();
}
// And of scales.
template <class SomeArgs>  // which need not have them
__device__ inline void load_x(const SomeArgs& args, const ChunkIterator& iter, const Pipeline& pipeline) {
  uint8* const to = pipeline.memory + iter.stage * kStageBytes;
  const int chunk = iter.first_chunk + iter.chunk, row = iter.unit * kRows;
  Mbarrier* const full = pipeline.full + iter.stage;
  load_packed_x(args, chunk, to + kFirstX, full, pipeline.x_full + iter.stage);
  if constexpr (kScaled) {
    const int at_scales[2] = {row, chunk * kGroups};
    if (threadIdx.x % 32 == 0) load_box(to + kFirstScale, args.map_scales, full, at_scales);
    __syncwarp();
  }
}
// By the warps that put x in order, where there are any. Units of a stage, and then those of the
// next, are theirs in turn; of each stage always the same ones, as a warp that leaves out a round
// of a barrier could not tell it from the next.
__device__ inline void repack_chunks(const Args& args, ChunkIterator iter, const Pipeline& pipeline, int warp) {
  constexpr int kFurther = kRepackWarps - kRepackUnits % kRepackWarps;
  const StageLane lane;
#pragma unroll 1
  for (; iter.has_more(args); iter.next()) {
    const int first = (warp + iter.stage * kFurther) % kRepackWarps;
    if (first >= kRepackUnits) continue;
    wait_for(pipeline.x_full + iter.stage, iter.parity);
    repack(lane, first, pipeline.memory + iter.stage * kStageBytes + kFirstX);
    fence_proxy_async();
    arrive(pipeline.full + iter.stage);
  }
}
// After it has asked for all stages once.
__device__ inline void load_chunks(const Args& args, ChunkIterator iter, const Pipeline& pipeline) {
#pragma unroll 1
  for (; iter.has_more(args); iter.next()) {
    wait_for(pipeline.read + iter.stage, iter.parity ^ 1);
    load_weights(args, iter, pipeline);
    load_x(args, iter, pipeline);
  }
  launch_dependent_grids();
}
