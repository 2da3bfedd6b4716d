// Convolution mainloop with a halo window in shared memory: the input pixels of a tile and their
// halo are loaded once for all taps of a plane, as consecutive padded lines, so that a tap is a row
// offset into the window. With kResident the filters of all taps stay in shared memory, too
// (filter-stationary). Requires sm90/tile_scheduler_conv.cuh, lib/epilogue_rows.cuh,
// sm90/load_im2col.cuh, sm90/residual_prefetch.cuh, sm90/warpgroups.cuh, sm90/conv_pipelines.cuh,
// sm90/prologue_pixels.cuh where producer warps compute pixels, and the generated header (kStages
// of filters, kWindowStages, kResident).
#include "lib/ptx_cluster.cuh"
#include "lib/ptx_tma.cuh"
#include "lib/ptx_wgmma.cuh"

typedef ConvPipelines<kStageBytesB> Pipelines;

// Windows of a work tile: one per block of channels and plane.
__device__ inline int window_count(const Args& args, const WorkTile& work) {
  return (int)args.k_blocks * plane_count(args, work.phase);
}

// One TMA thread, or the warps that compute pixels.
template <class A>
__device__ inline void produce_windows(const A& args, Pipelines pipeline) {
  for (int number = first_work(); number < work_count(args); number += work_step()) {
    const WorkTile work = work_of(args, number);
    if (work.count == 0) continue;
    for (int i = 0; i < window_count(args, work); ++i, pipeline.window.next()) {
      uint8* window = pipeline.window.buffer();
      if constexpr (kComputesPixels) {
        compute_window(args, work, i, window, [&] { pipeline.window.producer_acquire(); });
        fence_proxy_async();
        __syncwarp();
        if (threadIdx.x % 32 == 0) pipeline.window.producer_commit();
      } else {
        Mbarrier* full = pipeline.window.producer_acquire(kStageBytesA);
        load_window(args, work, i, window, full);
      }
    }
  }
}
// One TMA thread of another warp.
__device__ inline void produce_filters(const Args& args, Pipelines pipeline) {
  for (int number = first_work(); number < work_count(args); number += work_step()) {
    const WorkTile work = work_of(args, number);
    for (int block = 0; block < work.count; ++block, pipeline.filter.next()) {
      Mbarrier* full = pipeline.filter.producer_acquire(kStageBytesB);
      load_filters(args, work, block, pipeline.filter.buffer(), full);
    }
    if constexpr (kResident) return;
  }
}

__device__ inline void release_filter(const Pipelines& pipeline, int stage) {
  if constexpr (!kResident) pipeline.filter.consumer_release<kCluster>(stage);
}

// Issues the wgmma of one tap.
__device__ inline void issue_mma(const Pipelines& pipeline, int first_row, bool accumulate,
                                      Mma::Fragment (&accum)[kRowBlocks]) {
  const uint64 a = tile_descriptor<false>(pipeline.window.buffer() + first_row * kBlockKBytes);
  const uint64 b = tile_descriptor<kTransposeB>(pipeline.filter.buffer());
  fence_operand(accum);
  wgmma_fence();
#pragma unroll
  for (int k = 0; k < kBlockK / kInstructionK; ++k)
#pragma unroll
    for (int r = 0; r < kRowBlocks; ++r)
      Mma::multiply(accum[r], advance_descriptor(a, r * rows_step<false>() + k * k_step<false>()),
                    advance_descriptor(b, k * k_step<kTransposeB>()), accumulate || k > 0);
  wgmma_commit_group();
  fence_operand(accum);
}

// All taps of all blocks of channels. Filter and window stages are released after the next wgmma
// have been issued. `during_mma` runs once, while the first wgmma are in flight.
template <class DuringMma>
__device__ inline void mma_windows(const Args& args, Pipelines& pipeline, const WorkTile& work,
                                   const OrderBarrier& order, int first_row,
                                   Mma::Fragment (&accum)[kRowBlocks], DuringMma during_mma) {
  const int all_taps = (int)phase_word(args, work.phase, kTaps);
  const int taps = all_taps / (all_taps == 0 ? 1 : plane_count(args, work.phase));
  const int windows = taps == 0 ? 0 : window_count(args, work);
  const int64* tap_words = args.taps + phase_word(args, work.phase, kFirstTap);
  const auto row_of = [&](int tap) {
    return first_row + __shfl_sync(~0u, window_row(tap_words[tap]), 0);
  };
  int filter_before = -1, window_before = -1;
  int row = row_of(0);  // other planes have the same offsets
  for (int window = 0; window < windows; ++window, pipeline.window.next()) {
    pipeline.window.consumer_wait();
    for (int tap = 0; tap < taps; ++tap, pipeline.filter.next()) {
      if constexpr (kResident) pipeline.filter.phase = 0;  // filled once
      pipeline.filter.consumer_wait();
      if (window == windows - 1 && tap == taps - 1) order.arrive_next(pipeline.order);
      issue_mma(pipeline, row, window + tap > 0, accum);
      if (window + tap == 0) during_mma();
      row = row_of(tap + 1 < taps ? tap + 1 : 0);
      wgmma_wait_group<1>();
      if (filter_before >= 0) release_filter(pipeline, filter_before);
      if (window_before >= 0) pipeline.window.consumer_release(window_before);
      filter_before = pipeline.filter.stage;
      window_before = -1;
    }
    window_before = pipeline.window.stage;
  }
  wgmma_wait_group<0>();
  fence_operand(accum);
  if (filter_before >= 0) release_filter(pipeline, filter_before);
  if (window_before >= 0) pipeline.window.consumer_release(window_before);
}

// A consumer warpgroup.
__device__ inline void consume(const Args& args, Pipelines pipeline, int group) {
  const int warp = threadIdx.x / 32 % 4;
  uint8* staging = pipeline.staging_buffers + (group * 4 + warp) * kStagingBytes;
  const int first_row = kPingPong ? 0 : group * kRowBlocks * 64;
  OrderBarrier order = {group, group == 0};
  TileTails tails;
  int turn = 0;
  for (int number = first_work(); number < work_count(args); number += work_step()) {
    const WorkTile work = work_of(args, number);
    if (kPingPong && turn++ % kConsumers != group) {
      if (work.count == 0) continue;
      pipeline.window.skip(window_count(args, work));
      pipeline.filter.skip(work.count);
      continue;
    }
    prefetch_residual<false>(args, work, first_row, staging);
    const auto during_mma = [&] { prefetch_residual<true>(args, work, first_row, staging); };
    Mma::Fragment accum[kRowBlocks];
    order.wait(pipeline.order);
    if (kResident) pipeline.filter.stage = 0;
    if (kHasEmptyWork && work.count == 0) {
      order.arrive_next(pipeline.order);
      during_mma();
    }
    mma_windows(args, pipeline, work, order, first_row, accum, during_mma);
    if (kHasEmptyWork && work.count == 0) clear(accum);
    tails.begin_tile(args, work);
#pragma unroll
    for (int r = 0; r < kRowBlocks; ++r)
      epilogue_tile_rows(args, work, staging, accum[r], work.m + first_row + r * 64 + warp * 16,
                         tails);
    tails.end_tile(args, staging, group);
  }
  tails.end(args, group);
  wait_for_results();
}

extern "C" __global__ void __launch_bounds__(kThreads, kBlocksPerSm)
    gemm(const __grid_constant__ Args args) {
  Pipelines pipeline(aligned_shared_memory());
  start_barriers([&] {
    pipeline.filter.init(1, 4 * kTileWarpgroups * kCluster);
    pipeline.window.init(kComputesPixels ? kComputingWarps : 1, 4 * kTileWarpgroups);
    for (int group = 0; group < kConsumers; ++group) init_barrier(pipeline.order + group, 4);
  });
  const int group = own_group();
  if (group == kConsumers) {
    if constexpr (kConsumers > 1) setmaxnreg_dec<kProducerRegisters>();
    const int thread = (int)threadIdx.x % 128;
    if (kComputesPixels ? thread < kComputingWarps * 32 : thread == 0)
      produce_windows(args, pipeline);
    if (thread == kComputingWarps * 32) produce_filters(args, pipeline);
    __syncwarp();  // the cluster barrier below needs converged warps
  } else {
    if constexpr (kConsumers > 1) setmaxnreg_inc<kConsumerRegisters>();
    consume(args, pipeline, group);
  }
  // Other CTAs may still arrive on this CTA's barriers.
  if constexpr (kCluster > 1) cluster_sync_relaxed();
}
