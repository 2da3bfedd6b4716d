// Convolution of grouped or few channels, several groups packed into one tile. A row of shared
// memory holds the channels of kGroupsPerTile adjacent groups of one pixel; the halo window is
// loaded once for all taps as in sm90/mainloop_halo.cuh, and each group multiplies its own slice of
// the row. The filters of a pack of groups stay in shared memory while a CTA processes its tiles,
// which are consecutive. Requires sm90/tile_scheduler_conv.cuh, lib/epilogue_rows.cuh,
// sm90/load_im2col.cuh, sm90/warpgroups.cuh, sm90/conv_pipelines.cuh and the generated header,
// which defines
//   kGroupsPerTile  groups of a pack; each has Mma::kN columns of the kTileN
//   kGroupBytes     K of one group in bytes: kGroupsPerTile of them are kRowBytes, 32 to 128
//   kTapCount, tap_row(tap), tap_place(tap)  row offset of a tap, its index in the filter
//   kStages         stages of filters, one pack each
//   kWindowStages   a multiple of kConsumers: a stage is always read by the same warpgroup, which
//                   has therefore waited for its previous phase
// args.map_filters has (contiguous, other, tap) of a group: one TMA load brings all taps.
#include "lib/ptx_tma.cuh"
#include "lib/ptx_wgmma.cuh"

static const int kPartBytes = Mma::kN * kGroupBytes;  // of one tap of one group
static const int kGroupFilterBytes = kTapCount * kPartBytes;
static const int kFilterBytes = kGroupsPerTile * kGroupFilterBytes;

typedef ConvPipelines<kFilterBytes> Pipelines;

// A CTA processes tiles work_begin(block) to work_begin(block + 1) - 1.
__device__ inline int work_begin(const Args& args, int block) {
  return (int)((int64)work_count(args) * block / (int64)gridDim.x);
}

// The TMA producer, one thread.
__device__ inline void produce(const Args& args, Pipelines pipeline) {
  const int end = work_begin(args, blockIdx.x + 1);
  int group_pack = -1;
  for (int number = work_begin(args, blockIdx.x); number < end; ++number, pipeline.window.next()) {
    const WorkTile work = work_of(args, number);
    if (work.group != group_pack) {
      if (group_pack >= 0) pipeline.filter.next();
      group_pack = work.group;
      Mbarrier* full = pipeline.filter.producer_acquire(kFilterBytes);
#pragma unroll 1
      for (int side = 0; side < kGroupsPerTile; ++side) {
        const int at[3] = {
            0, (group_pack * kGroupsPerTile + side) * (kColumnsContiguous ? kGroupK : Mma::kN), 0};
        load_box(pipeline.filter.buffer() + side * kGroupFilterBytes, args.map_filters, full, at);
      }
    }
    Mbarrier* full = pipeline.window.producer_acquire(kStageBytesA);
    load_window(args, work, 0, pipeline.window.buffer(), full);
  }
}

// All wgmma of a tile: each reads 64 rows of its group's slice of the window and the filters of a
// tap.
__device__ inline void mma_window(const Pipelines& pipeline,
                                       Mma::Fragment (&accum)[kRowBlocks][kGroupsPerTile]) {
  const int kColumnBytes = Mma::kN * kElementBytes;
  const uint64 window = smem_descriptor<kRowBytes>(pipeline.window.buffer(), 0, 8 * kRowBytes);
  const uint8* filters = pipeline.filter.buffer();
  const uint64 filter = kTransposeB ? smem_descriptor<kColumnBytes>(filters, 0, 8 * kColumnBytes)
                                    : smem_descriptor<kGroupBytes>(filters, 0, 8 * kGroupBytes);
  const int kStep = kTransposeB ? kInstructionK * kColumnBytes : 32;
#pragma unroll
  for (int r = 0; r < kRowBlocks; ++r) fence_operand(accum[r]);
  wgmma_fence();
#pragma unroll
  for (int tap = 0; tap < kTapCount; ++tap)
#pragma unroll
    for (int k = 0; k < kGroupBytes / 32; ++k)
#pragma unroll
      for (int side = 0; side < kGroupsPerTile; ++side)
#pragma unroll
        for (int r = 0; r < kRowBlocks; ++r)
          Mma::multiply(accum[r][side],
                        advance_descriptor(window, (tap_row(tap) + r * 64) * kRowBytes +
                                                       side * kGroupBytes + k * 32),
                        advance_descriptor(filter, side * kGroupFilterBytes +
                                                       tap_place(tap) * kPartBytes + k * kStep),
                        tap + k > 0);
  wgmma_commit_group();
  wgmma_wait_group<0>();
#pragma unroll
  for (int r = 0; r < kRowBlocks; ++r) fence_operand(accum[r]);
}

// A consumer warpgroup: every kConsumers-th tile of the CTA. It follows the filter stages of all
// packs, also of those of which it has no tile.
__device__ inline void consume(const Args& args, Pipelines pipeline, int group) {
  const int warp = threadIdx.x / 32 % 4;
  uint8* staging = pipeline.staging_buffers + (group * 4 + warp) * kStagingBytes;
  const int begin = work_begin(args, blockIdx.x), end = work_begin(args, blockIdx.x + 1);
  TileTails tails;
  int group_pack = -1, turn = 0;
  for (int number = begin; number < end; ++number, pipeline.window.next()) {
    const WorkTile work = work_of(args, number);
    if (work.group != group_pack) {
      if (group_pack >= 0) {
        pipeline.filter.consumer_release(pipeline.filter.stage);
        pipeline.filter.next();
      }
      group_pack = work.group;
      pipeline.filter.consumer_wait();
    }
    const bool is_own = turn == group;
    turn = turn + 1 < kConsumers ? turn + 1 : 0;
    if (!is_own) continue;
    pipeline.window.consumer_wait();
    Mma::Fragment accum[kRowBlocks][kGroupsPerTile];
    mma_window(pipeline, accum);
    pipeline.window.consumer_release(pipeline.window.stage);
    tails.begin_tile(args, work);
#pragma unroll
    for (int r = 0; r < kRowBlocks; ++r)
      epilogue_tile_rows(args, work, staging, (const Mma::Accum(&)[kTileN / 2])accum[r],
                       work.m + r * 64 + warp * 16, tails);
    tails.end_tile(args, staging, group);
  }
  tails.end(args, group);
}

extern "C" __global__ void __launch_bounds__(kThreads, kBlocksPerSm)
    gemm(const __grid_constant__ Args args) {
  Pipelines pipeline(aligned_shared_memory());
  start_barriers([&] {
    pipeline.filter.init(1, 4 * kConsumers);
    pipeline.window.init(1, 4);
  });
  const int group = own_group();
  if (group == kConsumers) {
    setmaxnreg_dec<kProducerRegisters>();
    if (threadIdx.x == kConsumers * 128) produce(args, pipeline);
  } else {
    setmaxnreg_inc<kConsumerRegisters>();
    consume(args, pipeline, group);
  }
}
