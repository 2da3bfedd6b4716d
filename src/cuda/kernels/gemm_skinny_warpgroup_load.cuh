// Skinny GEMM on warpgroups (gemm_skinny_warpgroup.cuh): the stages of the pipeline, the producer
// warp and the repack warps.
//
// A stage holds a chunk: kChunk bytes of each row of the CTA, in 128-byte pieces swizzled by TMA; x
// of the same k, repacked (gemm_skinny_repack.cuh) by the pre-pass launch or by repack warps; the
// scales of these weights.
#include "lib/pipeline.cuh"
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
// Bytes expected on `full`: x is not among them where repack warps arrive instead.
static const int kTmaBytes = kChunkBytes - (kRepacksInCta ? kPackedXBytes : 0);

// Repack warps that arrive on the `full` barrier of a stage.
static const int kArrivingRepackWarps = !kRepacksInCta                ? 0
                             : kRepackUnits < kRepackWarps ? kRepackUnits
                                                         : kRepackWarps;

// Iterates over the chunks of a CTA, unit by unit, in the stages of the pipeline. Every warp has a
// copy of its own. TMA and repack warps fill a stage; all MMA threads arrive on its empty barrier.
struct ChunkPipeline : BufferPipeline<kStages, kStageBytes> {
  Mbarrier* x_full;  // of each stage: TMA has loaded x that is to be repacked
  int unit, every, first_chunk, chunks, chunk;

  __device__ ChunkPipeline(const Args& args, uint8* stages, Mbarrier* barriers) : chunk(0) {
    begin(stages, barriers);
    x_full = barriers + kBarriers;
    const int rank = blockIdx.x % kClusterBlocks, all = (int)args.rounds;
    const int most = (all + kClusterBlocks - 1) / kClusterBlocks;
    unit = blockIdx.x / kClusterBlocks;
    every = gridDim.x / kClusterBlocks;
    first_chunk = rank * most;
    chunks = min(most, all - first_chunk);
  }
  __device__ bool has_more(const Args& args) const { return unit < (int)args.units; }
  __device__ void next_chunk() {
    next();
    if (++chunk < chunks) return;
    chunk = 0;
    unit += every;
  }
};

// By a whole warp: issues the TMA load of the weights. Full boxes count as transaction bytes: TMA
// zero-fills out of bounds.
__device__ inline void load_weights(const Args& args, const ChunkPipeline& iter) {
  uint8* const to = iter.buffer();
  const int chunk = iter.first_chunk + iter.chunk, row = iter.unit * kRows;
  Mbarrier* const full = iter.full + iter.stage;
  if (threadIdx.x % 32 == 0) {
    arrive_and_expect_tx(full, kTmaBytes);
    const int at[3] = {0, chunk * kPieces, row};
    load_box(to, args.map_weights, full, at);
  }
  __syncwarp();
}
// By a whole warp: issues the TMA loads of x and of scales.
template <class SomeArgs>  // with map_scales only where kScaled
__device__ inline void load_x(const SomeArgs& args, const ChunkPipeline& iter) {
  uint8* const to = iter.buffer();
  const int chunk = iter.first_chunk + iter.chunk, row = iter.unit * kRows;
  Mbarrier* const full = iter.full + iter.stage;
  load_packed_x(args, chunk, to + kFirstX, full, iter.x_full + iter.stage);
  if constexpr (kScaled) {
    const int at_scales[2] = {row, chunk * kGroups};
    if (threadIdx.x % 32 == 0) load_box(to + kFirstScale, args.map_scales, full, at_scales);
    __syncwarp();
  }
}
// Main loop of the repack warps. Units of consecutive stages go round-robin over these warps. A
// warp always gets the same units of a given stage: if it skipped a phase of a barrier, it could
// not tell that phase from the next by parity.
__device__ inline void repack_chunks(const Args& args, ChunkPipeline iter, int warp) {
  constexpr int kFurther = kRepackWarps - kRepackUnits % kRepackWarps;
  const StageLane lane;
#pragma unroll 1
  for (; iter.has_more(args); iter.next_chunk()) {
    const int first = (warp + iter.stage * kFurther) % kRepackWarps;
    if (first >= kRepackUnits) continue;
    wait_for(iter.x_full + iter.stage, iter.phase);
    repack(lane, first, iter.buffer() + kFirstX);
    fence_proxy_async();
    iter.producer_commit();
  }
}
// Main loop of the producer warp, after the first fill of all stages.
__device__ inline void load_chunks(const Args& args, ChunkPipeline iter) {
#pragma unroll 1
  for (; iter.has_more(args); iter.next_chunk()) {
    iter.producer_acquire();
    load_weights(args, iter);
    load_x(args, iter);
  }
  launch_dependent_grids();
}
