// Warp-specialised persistent GEMM mainloop: producer warps fill a multi-stage pipeline with
// K-blocks by TMA (or compute operands), kConsumers warpgroups run wgmma and the epilogue. Requires
// the generated header, sm90/tile_scheduler.cuh, lib/epilogue_rows.cuh,
// sm90/warpgroups.cuh, sm90/cluster_reduce.cuh,
// sm90/residual_prefetch.cuh, with kStreams sm90/stream_k_fixup.cuh, and a loader that defines
//   kStageBytesA, kStageBytesB
//   load_stage(args, work, block, a, b, barrier)  issues the TMA loads of a K-block
//   epilogue_tile_rows(args, work, staging, accum, row, tails)  epilogue of 16 rows
//   ProducerPrologue<Args>(args, smem, group)  where a producer warpgroup computes an operand:
//   .stage(args, work, block, a, b, ready)  `ready` waits on the empty barrier and issues the TMA
//   loads of the other operand, unless called with false; `smem` lies behind all other buffers
// The header defines kStages, kRowBlocks (blocks of 64 rows of a tile per warpgroup), kTransposeA,
// kTransposeB, kPromotes, kTmaBytes (per stage), kHasWholeTiles and TileTails (lib/gemm_tails.cuh;
// NoTails with splits).
#include "lib/ptx_barrier.cuh"
#include "lib/ptx_cluster.cuh"
#include "lib/ptx_tma.cuh"
#include "lib/ptx_wgmma.cuh"

// Lanes of a producer warp that arrive on the full barrier of a stage. One lane per warp suffices,
// but race checkers track arriving threads only: all lanes arrive where a stage is not always
// filled by the same warpgroup.
static const int kArrivingLanes = kStages % kProducers == 0 ? 1 : 32;
// Arrivals on a full barrier: the thread that issues TMA, and the producer warps that compute.
static const int kFullArrivals = (kTmaBytes > 0) + (kComputes ? 4 * kArrivingLanes : 0);
// A wgmma covers 64 rows and Mma::kN columns. Instruction tiles of a warpgroup: row blocks, each
// with kParts column parts.
static const int kParts = kTileN / Mma::kN;
static const int kPieces = kRowBlocks * kParts;

template <class A>
struct ProducerPrologue;

struct GemmPipeline : Pipeline<kStages> {
  uint8 *a, *b, *staging_buffers, *producer_smem;
  Mbarrier *order, *computed;

  __device__ explicit GemmPipeline(uint8* memory) {
    a = memory;
    b = a + kStages * kStageBytesA;
    staging_buffers = b + kStages * kStageBytesB;
    begin((Mbarrier*)(staging_buffers + kConsumers * 4 * kStagingBytes));
    order = empty + kStages;
    computed = order + kConsumers;
    producer_smem = (uint8*)(order + (kConsumers + 2) / 2 * 2);  // a multiple of 16
  }
  __device__ uint8* stage_a() const { return a + stage * kStageBytesA; }
  __device__ uint8* stage_b() const { return b + stage * kStageBytesB; }
};

// The TMA producer, one thread.
template <class A>
__device__ inline void produce_stages(const A& args, GemmPipeline pipeline) {
  for (int number = first_work(); number < work_count(args); number += work_step()) {
    const WorkTile work = work_of(args, number);
    ResidualL2Prefetch l2_prefetch;
    for (int block = work.first; block < work.first + work.count; ++block, pipeline.next()) {
      Mbarrier* full = pipeline.producer_acquire(kTmaBytes);
      load_stage(args, work, block, pipeline.stage_a(), pipeline.stage_b(), full);
      if constexpr (kResidualStages > 0) l2_prefetch.block(args, work, block - work.first);
    }
    if constexpr (kResidualStages > 0) {
      for (int part = 0; part < kResidualStages; ++part, pipeline.next()) {
        pipeline.producer_acquire();
        load_residual(args, work, part, pipeline.stage_a(), pipeline.stage_b(),
                      pipeline.full + pipeline.stage);
      }
    }
  }
}
// A producer warpgroup that computes operands; several take stages round-robin.
template <class A>
__device__ inline void produce_computed_stages(const A& args, GemmPipeline pipeline, int group) {
  const bool issues_tma = kTmaBytes > 0 && threadIdx.x % 128 == 0;
  ProducerPrologue<A> prologue(args, pipeline.producer_smem, group);
  int turn = 0;
  for (int number = first_work(); number < work_count(args); number += work_step()) {
    const WorkTile work = work_of(args, number);
    for (int block = work.first; block < work.first + work.count; ++block, pipeline.next()) {
      if (kProducers > 1 && turn++ % kProducers != group) continue;
      uint8 *a = pipeline.stage_a(), *b = pipeline.stage_b();
      Mbarrier* full = pipeline.full + pipeline.stage;
      prologue.stage(args, work, block, a, b, [&](bool uses_tma = true) {
        pipeline.producer_acquire();
        if (!issues_tma) return;
        arrive_and_expect_tx(full, uses_tma ? kTmaBytes : 0);
        if (uses_tma) load_stage(args, work, block, a, b, full);
      });
      fence_proxy_async();
      __syncwarp();
      if (threadIdx.x % 32 < kArrivingLanes) pipeline.producer_commit();
    }
  }
}

// Issues the wgmma of one stage for kCount instruction tiles. `accumulate`: false overwrites.
template <int kCount>
__device__ inline void issue_mma(const GemmPipeline& pipeline, int first_row_block, int first_piece,
                                      bool accumulate, Mma::Fragment (&accum)[kCount]) {
  const uint64 a = tile_descriptor<kTransposeA>(pipeline.stage_a() +
                                                first_row_block * rows_step<kTransposeA>());
  const uint64 b = tile_descriptor<kTransposeB>(pipeline.stage_b());
  fence_operand(accum);
  wgmma_fence();
#pragma unroll
  for (int k = 0; k < kBlockK / kInstructionK; ++k)
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      const int row_block = (first_piece + i) / kParts, part = (first_piece + i) % kParts;
      Mma::multiply(accum[i],
                    advance_descriptor(
                        a, row_block * rows_step<kTransposeA>() + k * k_step<kTransposeA>()),
                    advance_descriptor(b, part * (Mma::kN / 64) * rows_step<kTransposeB>() +
                                              k * k_step<kTransposeB>()),
                    accumulate || k > 0);
    }
  wgmma_commit_group();
  fence_operand(accum);
}

// Waits for the residual stages of the tile while its last wgmma run, and only then signals the
// order barrier: the next warpgroup may wait only on stages whose previous phase is complete.
__device__ inline void wait_for_residual(GemmPipeline pipeline, const OrderBarrier& order) {
  if constexpr (kResidualStages > 0) {
    for (int part = 0; part < kResidualStages; ++part, pipeline.next()) pipeline.consumer_wait();
    order.arrive_next(pipeline.order);
  }
}

// fp8: tensor cores accumulate with fewer bits than f32, so the accumulators of each stage (K =
// 128) are promoted to f32, one instruction tile after the other. The other warpgroups keep the
// tensor cores busy in the meantime.
template <class DuringMma>
__device__ inline void mma_k_blocks_promoted(GemmPipeline& pipeline, const WorkTile& work,
                                             const OrderBarrier& order, int first_row_block,
                                             Mma::Fragment (&accum)[kPieces],
                                             DuringMma during_mma) {
  clear(accum);
  Mma::Fragment of_stage[1];
  for (int block = 0; block < work.count; ++block, pipeline.next()) {
    pipeline.consumer_wait();
    if (kResidualStages == 0 && block == work.count - 1) order.arrive_next(pipeline.order);
#pragma unroll
    for (int piece = 0; piece < kPieces; ++piece) {
      issue_mma(pipeline, first_row_block, piece, false, of_stage);
      if (block == 0 && piece == 0) during_mma();
      wgmma_wait_group<0>();
      fence_operand(of_stage);
      if (piece == kPieces - 1) pipeline.consumer_release<kCluster>(pipeline.stage);
#pragma unroll
      for (int i = 0; i < Mma::kN / 2; ++i) accum[piece][i] += of_stage[0][i];
    }
  }
  wait_for_residual(pipeline, order);
}

// Issues the wgmma of all K-blocks of a work tile. A stage is released after the wgmma of the next
// stage have been issued. `during_mma` runs once, while the first wgmma are in flight. Returns the
// stage that the last wgmma read; finish_mma waits for them and releases it.
template <class DuringMma>
__device__ inline int mma_k_blocks(GemmPipeline& pipeline, const WorkTile& work,
                                   const OrderBarrier& order, int first_row_block,
                                   Mma::Fragment (&accum)[kPieces], DuringMma during_mma) {
  int before = -1;
  for (int block = 0; block < work.count; ++block, pipeline.next()) {
    pipeline.consumer_wait();
    if (kResidualStages == 0 && block == work.count - 1) order.arrive_next(pipeline.order);
    issue_mma(pipeline, first_row_block, 0, block > 0, accum);
    if (block == 0) during_mma();
    wgmma_wait_group<1>();
    if (before >= 0) pipeline.consumer_release<kCluster>(before);
    before = pipeline.stage;
  }
  wait_for_residual(pipeline, order);
  return before;
}
__device__ inline void finish_mma(const GemmPipeline& pipeline, int stage,
                                    Mma::Fragment (&accum)[kPieces]) {
  wgmma_wait_group<0>();
  fence_operand(accum);
  if (stage >= 0) pipeline.consumer_release<kCluster>(stage);
}

// 16 rows of a warp for lib/epilogue_tma_store.cuh, which loads per-column operands and computes
// addresses before it waits for the last wgmma. Whether the tile lies fully inside the result is
// decided once for all rows of a warp, so that per-column operands are loaded once.
//
// Not with producers that compute operands: they wait on empty barriers, so stages must be released
// before the epilogue waits for its staging buffers.
static const bool kDefersMmaWait = kStoreBuffers > 0 && !kComputes;
template <bool kIsWhole>
struct SubtileRows : ResidualRows<GemmPipeline> {
  static const bool kWhole = kIsWhole;
  uint8* boxes;
  Mma::Fragment (&accum)[kPieces];
  bool is_first;  // first row block of the warp
  int stage;      // read by the last wgmma

  __device__ void wait() const {
    if (is_first) finish_mma(this->pipeline, stage, accum);
  }
};

// Before stages are reused as scratch: waits until all consumer warps have released all stages and
// all computing producer threads have arrived.
__device__ inline void drain_pipeline(GemmPipeline pipeline) {
  if constexpr (kComputes) wait_for(pipeline.computed, 0);
  for (int s = 0; s < kStages; ++s, pipeline.next()) pipeline.producer_acquire();
}

// Warp index in its warpgroup, broadcast so that the compiler sees a warp-uniform value and keeps
// addresses and bounds in uniform registers.
__device__ inline int own_warp() { return __shfl_sync(~0u, (int)threadIdx.x / 32 % 4, 0); }
__device__ inline int first_row_block_of(int group) { return kPingPong ? 0 : group * kRowBlocks; }
__device__ inline uint8* staging_of(const GemmPipeline& pipeline, int group) {
  return pipeline.staging_buffers + (group * 4 + threadIdx.x / 32 % 4) * kStagingBytes;
}

// A consumer warpgroup. The accumulators of a split tile are spilled to the pipeline stages.
template <class A>
__device__ inline void consume(const A& args, GemmPipeline pipeline, int group) {
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
    Mma::Fragment accum[kPieces];
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
    if (kHasEmptyWork && !kPromotes && work.count == 0) clear(accum);
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
          epilogue_tile_rows(args, work, rows_of(r), *(Mma::Accum(*)[kTileN / 2]) accum[r * kParts],
                           work.m + (first_row_block + r) * 64 + warp * 16, tails);
      };
      if constexpr (kDefersMmaWait) {
        const auto bounds = bounds_of(args, work);
        const int rows_end = (first_row_block + kRowBlocks) * 64;
        const auto residual = [&](int r) {
          return ResidualRows<GemmPipeline>{pipeline, first_row_block + r, r == kRowBlocks - 1};
        };
        if (bounds.first_row + work.m + rows_end <= bounds.row_end &&
            bounds.first_column + kTileN <= bounds.column_end)
          finish([&](int r) {
            return SubtileRows<true>{residual(r), staging, accum, r == 0, last_stage};
          });
        else
          finish([&](int r) {
            return SubtileRows<false>{residual(r), staging, accum, r == 0, last_stage};
          });
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

// Split-K: all threads of the cluster call it at one point of the program and with the same
// register count, after the accumulators of the split tile have been spilled.
template <class A>
__device__ inline void finish_split_tile(const A& args, const GemmPipeline& pipeline) {
  cluster_sync();
  const int group = own_group();  // recomputed, not kept in a register
  if (group >= kConsumers || (kPingPong && group != waves_before_split(args) % kConsumers)) return;
  if constexpr (kConsumers > 1) setmaxnreg_inc<kConsumerRegisters>();
  cluster_reduce(args, pipeline.a, staging_of(pipeline, group),
             first_row_block_of(group) * 4 + threadIdx.x / 32 % 4);
}

extern "C" __global__ void __launch_bounds__(kThreads, kBlocksPerSm)
    gemm(const __grid_constant__ Args args) {
  GemmPipeline pipeline(aligned_shared_memory());
  start_barriers([&] {
    pipeline.init(kFullArrivals, 4 * kTileWarpgroups * kCluster);
    for (int group = 0; group < kConsumers; ++group) init_barrier(pipeline.order + group, 4);
    init_barrier(pipeline.computed, kProducers * 128);
  });
  const int group = own_group();
  if (group >= kConsumers) {
    if constexpr (kConsumers > 1) setmaxnreg_dec<kProducerRegisters>();
    if constexpr (kComputes) {
      produce_computed_stages(args, pipeline, group - kConsumers);
      if constexpr (kSplits > 1) arrive(pipeline.computed);
    } else if (threadIdx.x % 128 == 0) {
      produce_stages(args, pipeline);
    }
    __syncwarp();  // the cluster barriers below need converged warps
  } else {
    if constexpr (kConsumers > 1) setmaxnreg_inc<kConsumerRegisters>();
    consume(args, pipeline, group);
    if constexpr (kSplits > 1 && kConsumers > 1) {
      group_barrier<128>(group);  // between two setmaxnreg of a warpgroup
      setmaxnreg_dec<kProducerRegisters>();
    }
  }
  if constexpr (kSplits > 1)
    if (has_split_tile(args)) finish_split_tile(args, pipeline);
  // Other CTAs may still arrive on this CTA's barriers or read its accumulators.
  if constexpr (kCluster > 1 || kSplits > 1) cluster_sync_relaxed();
}
