// The product of two matrices that copy engines bring into shared memory block by block of depth:
// one warp asks for them, kConsumers warpgroups multiply and finish. Comes after a kernel's head,
// sm90/tile_scheduler.cuh, lib/epilogue_rows.cuh, lib/ptx_wgmma_mma_async.cuh, sm90/warpgroups.cuh,
// sm90/cluster_reduce.cuh, sm90/residual_prefetch.cuh and a loader, which has
//   kStageBytesA, kStageBytesB
//   load_stage(args, work, block, a, b, barrier)  asks for the tiles of a block of depth
//   epilogue_tile_rows(args, work, slab, sums, row, tails)  what becomes of 16 rows of sums
//   Computing<Args>(args, memory, group)  where a factor is computed on the way in, by a warpgroup:
//   .stage(args, work, block, a, b, ready)  `ready` waits for the stage and asks for what is not
//   computed, unless it is given false; `memory` is behind all
// The head has kStages, kRowBlocks (of 64 rows that a warpgroup has of a tile), kTransposeA,
// kTransposeB, kPromotes, kTmaBytes (of a stage), kHasWholeTiles (whether any tile is whole) and
// TileTails (lib/gemm_tails.cuh; there are none with splits). With kStreams comes after
// sm90/stream_k_fixup.cuh, too.
#include "lib/ptx_barrier.cuh"
#include "lib/ptx_cluster.cuh"
#include "lib/ptx_tma.cuh"
#include "lib/ptx_wgmma.cuh"

// Lanes of a warp that say that they have computed their part of a stage. One does for its warp,
// but checkers of races follow only who speaks: where a stage is not always the same warpgroup's,
// all do.
static const int kArrivingLanes = kStages % kProducers == 0 ? 1 : 32;
// At the barrier of a full stage: whoever asks for a part of it, and warps that compute the rest.
static const int kFullArrivals = (kTmaBytes > 0) + (kComputes ? 4 * kArrivingLanes : 0);
// A product has 64 rows and WGMMA_N columns: the pieces that a warpgroup has of a tile, those of
// the same rows one after the other.
static const int kParts = kTileN / WGMMA_N;
static const int kPieces = kRowBlocks * kParts;

template <class A>
struct ProducerPrologue;

struct Pipeline : PipelineState<kStages> {
  uint8 *a, *b, *staging_buffers, *producer_smem;
  Mbarrier *full, *empty, *order, *computed;
};

__device__ inline Pipeline pipeline_of(uint8* memory) {
  Pipeline pipeline;
  pipeline.a = memory;
  pipeline.b = pipeline.a + kStages * kStageBytesA;
  pipeline.staging_buffers = pipeline.b + kStages * kStageBytesB;
  pipeline.full = (Mbarrier*)(pipeline.staging_buffers + kConsumers * 4 * kStagingBytes);
  pipeline.empty = pipeline.full + kStages;
  pipeline.order = pipeline.empty + kStages;
  pipeline.computed = pipeline.order + kConsumers;
  pipeline.producer_smem = (uint8*)(pipeline.order + (kConsumers + 2) / 2 * 2);  // a multiple of 16
  pipeline.stage = pipeline.parity = 0;
  return pipeline;
}

__device__ inline void start(const Pipeline& pipeline) {
  if (threadIdx.x == 0) {
    for (int s = 0; s < kStages; ++s) {
      init_barrier(pipeline.full + s, kFullArrivals);
      init_barrier(pipeline.empty + s, 4 * kTileWarpgroups * kCluster);
    }
    for (int group = 0; group < kConsumers; ++group) init_barrier(pipeline.order + group, 4);
    init_barrier(pipeline.computed, kProducers * 128);
    fence_barriers();
  }
  if constexpr (kCluster > 1)
    cluster_sync_relaxed();
  else
    __syncthreads();
}

// One thread.
template <class A>
__device__ inline void produce_stages(const A& args, Pipeline pipeline) {
  for (int number = first_work(); number < work_count(args); number += work_step()) {
    const WorkTile work = work_of(args, number);
    ResidualL2Prefetch l2_prefetch;
    for (int block = work.first; block < work.first + work.count; ++block, pipeline.next()) {
      Mbarrier* full = pipeline.full + pipeline.stage;
      wait_for(pipeline.empty + pipeline.stage, pipeline.parity ^ 1);
      arrive_and_expect_tx(full, kTmaBytes);
      load_stage(args, work, block, pipeline.a + pipeline.stage * kStageBytesA,
                 pipeline.b + pipeline.stage * kStageBytesB, full);
      if constexpr (kResidualStages > 0) l2_prefetch.block(args, work, block - work.first);
    }
    if constexpr (kResidualStages > 0) {
      for (int part = 0; part < kResidualStages; ++part, pipeline.next()) {
        wait_for(pipeline.empty + pipeline.stage, pipeline.parity ^ 1);
        load_residual(args, work, part, pipeline.a + pipeline.stage * kStageBytesA,
                        pipeline.b + pipeline.stage * kStageBytesB, pipeline.full + pipeline.stage);
      }
    }
  }
}
// A warpgroup; where several compute, they take stages in turns.
template <class A>
__device__ inline void produce_computed_stages(const A& args, Pipeline pipeline, int group) {
  const bool issues_tma = kTmaBytes > 0 && threadIdx.x % 128 == 0;
  ProducerPrologue<A> prologue(args, pipeline.producer_smem, group);
  int turn = 0;
  for (int number = first_work(); number < work_count(args); number += work_step()) {
    const WorkTile work = work_of(args, number);
    for (int block = work.first; block < work.first + work.count; ++block, pipeline.next()) {
      if (kProducers > 1 && turn++ % kProducers != group) continue;
      uint8* a = pipeline.a + pipeline.stage * kStageBytesA;
      uint8* b = pipeline.b + pipeline.stage * kStageBytesB;
      Mbarrier* full = pipeline.full + pipeline.stage;
      prologue.stage(args, work, block, a, b, [&](bool uses_tma = true) {
        wait_for(pipeline.empty + pipeline.stage, pipeline.parity ^ 1);
        if (!issues_tma) return;
        arrive_and_expect_tx(full, uses_tma ? kTmaBytes : 0);
        if (uses_tma) load_stage(args, work, block, a, b, full);
      });
      fence_proxy_async();
      __syncwarp();
      if (threadIdx.x % 32 < kArrivingLanes) arrive(full);
    }
  }
}

// The warp has read a stage; all blocks whose loads write to it are told.
__device__ inline void release(const Pipeline& pipeline, int stage) {
  const int lane = threadIdx.x % 32;
  if constexpr (kCluster > 1) {
    if (lane < kCluster) arrive_remote(pipeline.empty + stage, lane);
  } else {
    if (lane == 0) arrive(pipeline.empty + stage);
  }
}

// The products of a stage for kCount pieces, started. `keeps`: the sums so far count.
template <int kCount>
__device__ inline void issue_mma(const Pipeline& pipeline, int first_row_block, int first_piece,
                                      bool accumulate, Accum (&accum)[kCount][WGMMA_N / 2]) {
  const uint64 a = tile_descriptor<kTransposeA>(pipeline.a + pipeline.stage * kStageBytesA +
                                                first_row_block * rows_step<kTransposeA>());
  const uint64 b = tile_descriptor<kTransposeB>(pipeline.b + pipeline.stage * kStageBytesB);
  fence_operand(accum);
  wgmma_fence();
#pragma unroll
  for (int k = 0; k < kBlockK / kInstructionK; ++k)
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      const int row_block = (first_piece + i) / kParts, part = (first_piece + i) % kParts;
      multiply(accum[i],
               advance_descriptor(
                   a, row_block * rows_step<kTransposeA>() + k * k_step<kTransposeA>()),
               advance_descriptor(b, part * (WGMMA_N / 64) * rows_step<kTransposeB>() +
                                         k * k_step<kTransposeB>()),
               accumulate || k > 0);
    }
  wgmma_commit_group();
  fence_operand(accum);
}

// While a tile's last products are made: until what was brought for it has come. The next turn
// begins here, so that who takes it knows of all stages before.
__device__ inline void wait_for_residual(Pipeline pipeline, const OrderBarrier& order) {
  if constexpr (kResidualStages > 0) {
    for (int part = 0; part < kResidualStages; ++part, pipeline.next())
      wait_for(pipeline.full + pipeline.stage, pipeline.parity);
    order.arrive_next(pipeline.order);
  }
}

// For units whose sums have few bits (fp8): those of a stage, 128 of depth, are added in f32, piece
// by piece. Meanwhile the other warpgroups keep the units busy.
template <class DuringMma>
__device__ inline void mma_k_blocks_promoted(Pipeline& pipeline, const WorkTile& work, const OrderBarrier& order,
                                                   int first_row_block,
                                                   Accum (&accum)[kPieces][WGMMA_N / 2],
                                                   DuringMma during_mma) {
#pragma unroll
  for (int piece = 0; piece < kPieces; ++piece)
#pragma unroll
    for (int i = 0; i < WGMMA_N / 2; ++i) accum[piece][i] = 0;
  Accum of_stage[1][WGMMA_N / 2];
  for (int block = 0; block < work.count; ++block, pipeline.next()) {
    wait_for(pipeline.full + pipeline.stage, pipeline.parity);
    if (kResidualStages == 0 && block == work.count - 1) order.arrive_next(pipeline.order);
#pragma unroll
    for (int piece = 0; piece < kPieces; ++piece) {
      issue_mma(pipeline, first_row_block, piece, false, of_stage);
      if (block == 0 && piece == 0) during_mma();
      wgmma_wait_group<0>();
      fence_operand(of_stage);
      if (piece == kPieces - 1) release(pipeline, pipeline.stage);
#pragma unroll
      for (int i = 0; i < WGMMA_N / 2; ++i) accum[piece][i] += of_stage[0][i];
    }
  }
  wait_for_residual(pipeline, order);
}

// Multiplies all blocks of a piece of work. A stage is given back when the products that follow
// have been started. `meanwhile` is done once, while the first ones are made. The last ones are
// left to finish_mma, with what is handed back: the stage that they read.
template <class DuringMma>
__device__ inline int mma_k_blocks(Pipeline& pipeline, const WorkTile& work, const OrderBarrier& order,
                                      int first_row_block, Accum (&accum)[kPieces][WGMMA_N / 2],
                                      DuringMma during_mma) {
  int before = -1;
  for (int block = 0; block < work.count; ++block, pipeline.next()) {
    wait_for(pipeline.full + pipeline.stage, pipeline.parity);
    if (kResidualStages == 0 && block == work.count - 1) order.arrive_next(pipeline.order);
    issue_mma(pipeline, first_row_block, 0, block > 0, accum);
    if (block == 0) during_mma();
    wgmma_wait_group<1>();
    if (before >= 0) release(pipeline, before);
    before = pipeline.stage;
  }
  wait_for_residual(pipeline, order);
  return before;
}
__device__ inline void finish_mma(const Pipeline& pipeline, int stage,
                                    Accum (&accum)[kPieces][WGMMA_N / 2]) {
  wgmma_wait_group<0>();
  fence_operand(accum);
  if (stage >= 0) release(pipeline, stage);
}

// 16 rows of a warp for lib/epilogue_tma_store.cuh, which wants to be ready before it waits for the
// products: what it loads of columns and most addresses are there then. Others wait at once.
// Whether all rows and columns of the tile are there is decided once for all rows of a warp: what
// belongs to columns is loaded once for them.
// Who computes factors waits for stages: these are given back before boxes are waited for.
static const bool kDefersMmaWait = kStoreBuffers > 0 && !kComputes;
template <bool kIsWhole>
struct SubtileRows : ResidualRows<Pipeline> {
  static const bool kWhole = kIsWhole;
  uint8* boxes;
  Accum (&accum)[kPieces][WGMMA_N / 2];
  bool is_first;  // of the warp
  int stage;      // that the last products read

  __device__ void wait() const {
    if (is_first) finish_mma(this->pipeline, stage, accum);
  }
};

// Where no work follows: until all warps have given back all stages, and all threads have said that
// they have computed theirs.
__device__ inline void drain_pipeline(Pipeline pipeline) {
  if constexpr (kComputes) wait_for(pipeline.computed, 0);
  for (int s = 0; s < kStages; ++s, pipeline.next()) wait_for(pipeline.empty + pipeline.stage, pipeline.parity ^ 1);
}

// What a warp has for itself. Its number is the same for all lanes, as the compiler can see:
// addresses and bounds stay in uniform registers.
__device__ inline int own_warp() { return __shfl_sync(~0u, (int)threadIdx.x / 32 % 4, 0); }
__device__ inline int first_row_block_of(int group) { return kPingPong ? 0 : group * kRowBlocks; }
__device__ inline uint8* staging_of(const Pipeline& pipeline, int group) {
  return pipeline.staging_buffers + (group * 4 + threadIdx.x / 32 % 4) * kStagingBytes;
}

// A warpgroup. The sums of a part stay in the ring.
template <class A>
__device__ inline void consume(const A& args, Pipeline pipeline, int group) {
  const int warp = own_warp();
  uint8* staging = staging_of(pipeline, group);
  const int first_row_block = first_row_block_of(group);
  OrderBarrier order = {group, group == 0};
  TileTails tails;
  int turn = 0;
  for (int number = first_work(); number < work_count(args); number += work_step()) {
    const WorkTile work = work_of(args, number);
    if (kPingPong && turn++ % kConsumers != group) {
      pipeline.skip(work.count + kResidualStages);
      continue;
    }
    const bool finishes = !kStreams || work.first == 0;
    if (finishes) prefetch_residual<false>(args, work, first_row_block * 64, staging);
    const auto during_mma = [&] {
      if (finishes) prefetch_residual<true>(args, work, first_row_block * 64, staging);
    };
    Accum accum[kPieces][WGMMA_N / 2];
    order.wait(pipeline.order);
    if (work.count == 0) {
      order.arrive_next(pipeline.order);
      during_mma();
    }
    int last_stage = -1;
    if constexpr (kPromotes)
      mma_k_blocks_promoted(pipeline, work, order, first_row_block, accum, during_mma);
    else
      last_stage = mma_k_blocks(pipeline, work, order, first_row_block, accum, during_mma);
    if constexpr (!kDefersMmaWait) finish_mma(pipeline, last_stage, accum);
    if (kHasEmptyWork && !kPromotes && work.count == 0) {
#pragma unroll
      for (int piece = 0; piece < kPieces; ++piece)
#pragma unroll
        for (int i = 0; i < WGMMA_N / 2; ++i) accum[piece][i] = 0;
    }
    if constexpr (kSplits > 1) {
      if (!kHasWholeTiles || is_split_tile(args, number)) {
        drain_pipeline(pipeline);
        spill_accumulators(pipeline.a, accum, first_row_block * 4 + warp);
        continue;
      }
    }
    if constexpr (kStreams) {
      if (!finishes) {
        publish_partials(args, accum, first_row_block * 4 + warp);
        continue;
      }
      if (work.count < (int)args.tile_stages) add_partials(args, accum, first_row_block * 4 + warp);
    }
    if constexpr (kHasWholeTiles) {
      tails.begin_tile(args, work);
      const auto finish = [&](auto rows_of) {
#pragma unroll
        for (int r = 0; r < kRowBlocks; ++r)
          epilogue_tile_rows(args, work, rows_of(r), *(Accum(*)[kTileN / 2]) accum[r * kParts],
                           work.m + (first_row_block + r) * 64 + warp * 16, tails);
      };
      if constexpr (kDefersMmaWait) {
        const auto bounds = bounds_of(args, work);
        const int rows_end = (first_row_block + kRowBlocks) * 64;
        const auto residual = [&](int r) {
          return ResidualRows<Pipeline>{pipeline, first_row_block + r, r == kRowBlocks - 1};
        };
        if (bounds.first_row + work.m + rows_end <= bounds.row_end &&
            bounds.first_column + kTileN <= bounds.column_end)
          finish([&](int r) { return SubtileRows<true>{residual(r), staging, accum, r == 0, last_stage}; });
        else
          finish([&](int r) { return SubtileRows<false>{residual(r), staging, accum, r == 0, last_stage}; });
      } else {
        finish([&](int) { return staging; });
      }
      for (int part = 0; part < kResidualStages; ++part) pipeline.next();
      tails.end_tile(args, staging, group);
    }
  }
  tails.end(args, group);
  wait_for_results();
}

// The number of the warpgroup. The same for a whole warp, as the compiler can see: descriptors stay
// in uniform registers.
__device__ inline int own_group() { return __shfl_sync(~0u, (int)threadIdx.x / 128, 0); }

// All threads of the cluster, from one place of the program and with the same number of registers:
// the sums of the parts have been laid down.
template <class A>
__device__ inline void finish_split_tile(const A& args, const Pipeline& pipeline) {
  cluster_sync();
  const int group = own_group();  // again: it need not have been kept
  if (group >= kConsumers || (kPingPong && group != waves_before_split(args) % kConsumers)) return;
  if constexpr (kConsumers > 1) setmaxnreg_inc<kConsumerRegisters>();
  cluster_reduce(args, pipeline.a, staging_of(pipeline, group),
             first_row_block_of(group) * 4 + threadIdx.x / 32 % 4);
}

extern "C" __global__ void __launch_bounds__(kThreads, kBlocksPerSm)
    gemm(const __grid_constant__ Args args) {
  uint8* memory = shared_memory();
  memory += (1024 - (uint64)memory % 1024) % 1024;  // no round trip: it stays known to be shared
  Pipeline pipeline = pipeline_of(memory);
  start(pipeline);
  const int group = own_group();
  if (group >= kConsumers) {
    if constexpr (kConsumers > 1) setmaxnreg_dec<kProducerRegisters>();
    if constexpr (kComputes) {
      produce_computed_stages(args, pipeline, group - kConsumers);
      if constexpr (kSplits > 1) arrive(pipeline.computed);
    } else if (threadIdx.x % 128 == 0) {
      produce_stages(args, pipeline);
    }
    __syncwarp();  // the barriers below take whole warps
  } else {
    if constexpr (kConsumers > 1) setmaxnreg_inc<kConsumerRegisters>();
    consume(args, pipeline, group);
    if constexpr (kSplits > 1 && kConsumers > 1) {
      group_barrier<128>(group);  // between two changes of a warpgroup's registers
      setmaxnreg_dec<kProducerRegisters>();
    }
  }
  if constexpr (kSplits > 1)
    if (has_split_tile(args)) finish_split_tile(args, pipeline);
  // Others may still tell this block's barriers that they are done, or read its sums.
  if constexpr (kCluster > 1 || kSplits > 1) cluster_sync_relaxed();
}
