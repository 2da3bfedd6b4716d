// Convolution mainloop with a halo window in shared memory: the input pixels of a tile and their
// halo are loaded once for all taps of a plane, as consecutive padded lines, so that a tap is a row
// offset into the window. With kResident the filters of all taps stay in shared memory, too
// (filter-stationary). Requires sm90/tile_scheduler_conv.cuh, lib/epilogue_rows.cuh,
// lib/ptx_wgmma_mma_async.cuh, sm90/load_im2col.cuh, sm90/residual_prefetch.cuh,
// sm90/warpgroups.cuh, sm90/prologue_pixels.cuh where producer warps compute pixels, and the
// generated header (kStages of filters, kWindowStages, kResident).
#include "lib/ptx_cluster.cuh"
#include "lib/ptx_tma.cuh"
#include "lib/ptx_wgmma.cuh"

struct Pipeline {
  uint8 *windows, *filters, *staging_buffers;
  Mbarrier *full, *empty, *full_window, *empty_window, *order;
  PipelineState<kStages> filter;
  PipelineState<kWindowStages> window;
};

__device__ inline Pipeline pipeline_of(uint8* memory) {
  Pipeline pipeline;
  pipeline.windows = memory;
  pipeline.filters = pipeline.windows + kWindowStages * kStageBytesA;
  pipeline.staging_buffers = pipeline.filters + kStages * kStageBytesB;
  pipeline.full = (Mbarrier*)(pipeline.staging_buffers + kConsumers * 4 * kStagingBytes);
  pipeline.empty = pipeline.full + kStages;
  pipeline.full_window = pipeline.empty + kStages;
  pipeline.empty_window = pipeline.full_window + kWindowStages;
  pipeline.order = pipeline.empty_window + kWindowStages;
  pipeline.filter = {0, 0};
  pipeline.window = {0, 0};
  return pipeline;
}

__device__ inline void start(const Pipeline& pipeline) {
  if (threadIdx.x == 0) {
    for (int s = 0; s < kStages; ++s) {
      init_barrier(pipeline.full + s, 1);
      init_barrier(pipeline.empty + s, 4 * kTileWarpgroups * kCluster);
    }
    for (int s = 0; s < kWindowStages; ++s) {
      init_barrier(pipeline.full_window + s, kComputesPixels ? kComputingWarps : 1);
      init_barrier(pipeline.empty_window + s, 4 * kTileWarpgroups);
    }
    for (int group = 0; group < kConsumers; ++group) init_barrier(pipeline.order + group, 4);
    fence_barriers();
  }
  if constexpr (kCluster > 1)
    cluster_sync_relaxed();
  else
    __syncthreads();
}

// Windows of a work tile: one per block of channels and plane.
__device__ inline int window_count(const Args& args, const WorkTile& work) {
  return (int)args.k_blocks * plane_count(args, work.phase);
}

// One TMA thread, or the warps that compute pixels.
template <class A>
__device__ inline void produce_windows(const A& args, Pipeline pipeline) {
  for (int number = first_work(); number < work_count(args); number += work_step()) {
    const WorkTile work = work_of(args, number);
    if (work.count == 0) continue;
    for (int i = 0; i < window_count(args, work); ++i, pipeline.window.next()) {
      const int stage = pipeline.window.stage;
      uint8* window = pipeline.windows + stage * kStageBytesA;
      const auto ready = [&] {
        wait_for(pipeline.empty_window + stage, pipeline.window.parity ^ 1);
      };
      if constexpr (kComputesPixels) {
        compute_window(args, work, i, window, ready);
        fence_proxy_async();
        __syncwarp();
        if (threadIdx.x % 32 == 0) arrive(pipeline.full_window + stage);
      } else {
        ready();
        arrive_and_expect_tx(pipeline.full_window + stage, kStageBytesA);
        load_window(args, work, i, window, pipeline.full_window + stage);
      }
    }
  }
}
// One TMA thread of another warp.
__device__ inline void produce_filters(const Args& args, Pipeline pipeline) {
  for (int number = first_work(); number < work_count(args); number += work_step()) {
    const WorkTile work = work_of(args, number);
    for (int block = 0; block < work.count; ++block, pipeline.filter.next()) {
      const int stage = pipeline.filter.stage;
      wait_for(pipeline.empty + stage, pipeline.filter.parity ^ 1);
      arrive_and_expect_tx(pipeline.full + stage, kStageBytesB);
      load_filters(args, work, block, pipeline.filters + stage * kStageBytesB,
                   pipeline.full + stage);
    }
    if constexpr (kResident) return;
  }
}

// Called by a whole warp that has read the stage: arrives on its empty barrier in every CTA whose
// multicast loads write to it.
__device__ inline void release_filter(const Pipeline& pipeline, int stage) {
  const int lane = threadIdx.x % 32;
  if constexpr (kResident) return;
  if constexpr (kCluster > 1) {
    if (lane < kCluster) arrive_remote(pipeline.empty + stage, lane);
  } else {
    if (lane == 0) arrive(pipeline.empty + stage);
  }
}
__device__ inline void release_window(const Pipeline& pipeline, int stage) {
  if (threadIdx.x % 32 == 0) arrive(pipeline.empty_window + stage);
}

// Issues the wgmma of one tap.
__device__ inline void issue_mma(const Pipeline& pipeline, int first_row, bool accumulate,
                                      Accum (&accum)[kRowBlocks][WGMMA_N / 2]) {
  const uint64 a = tile_descriptor<false>(pipeline.windows + pipeline.window.stage * kStageBytesA +
                                          first_row * kBlockKBytes);
  const uint64 b =
      tile_descriptor<kTransposeB>(pipeline.filters + pipeline.filter.stage * kStageBytesB);
  fence_operand(accum);
  wgmma_fence();
#pragma unroll
  for (int k = 0; k < kBlockK / kInstructionK; ++k)
#pragma unroll
    for (int r = 0; r < kRowBlocks; ++r)
      multiply(accum[r], advance_descriptor(a, r * rows_step<false>() + k * k_step<false>()),
               advance_descriptor(b, k * k_step<kTransposeB>()), accumulate || k > 0);
  wgmma_commit_group();
  fence_operand(accum);
}

// All taps of all blocks of channels. Filter and window stages are released after the next wgmma
// have been issued. `during_mma` runs once, while the first wgmma are in flight.
template <class DuringMma>
__device__ inline void mma_windows(const Args& args, Pipeline& pipeline, const WorkTile& work,
                                   const OrderBarrier& order, int first_row,
                                   Accum (&accum)[kRowBlocks][WGMMA_N / 2], DuringMma during_mma) {
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
    wait_for(pipeline.full_window + pipeline.window.stage, pipeline.window.parity);
    for (int tap = 0; tap < taps; ++tap, pipeline.filter.next()) {
      wait_for(pipeline.full + pipeline.filter.stage, kResident ? 0 : pipeline.filter.parity);
      if (window == windows - 1 && tap == taps - 1) order.arrive_next(pipeline.order);
      issue_mma(pipeline, row, window + tap > 0, accum);
      if (window + tap == 0) during_mma();
      row = row_of(tap + 1 < taps ? tap + 1 : 0);
      wgmma_wait_group<1>();
      if (filter_before >= 0) release_filter(pipeline, filter_before);
      if (window_before >= 0) release_window(pipeline, window_before);
      filter_before = pipeline.filter.stage;
      window_before = -1;
    }
    window_before = pipeline.window.stage;
  }
  wgmma_wait_group<0>();
  fence_operand(accum);
  if (filter_before >= 0) release_filter(pipeline, filter_before);
  if (window_before >= 0) release_window(pipeline, window_before);
}

// A consumer warpgroup.
__device__ inline void consume(const Args& args, Pipeline pipeline, int group) {
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
    Accum accum[kRowBlocks][WGMMA_N / 2];
    order.wait(pipeline.order);
    if (kResident) pipeline.filter = {0, 0};
    if (kHasEmptyWork && work.count == 0) {
      order.arrive_next(pipeline.order);
      during_mma();
    }
    mma_windows(args, pipeline, work, order, first_row, accum, during_mma);
    if (kHasEmptyWork && work.count == 0) {
#pragma unroll
      for (int r = 0; r < kRowBlocks; ++r)
#pragma unroll
        for (int i = 0; i < WGMMA_N / 2; ++i) accum[r][i] = 0;
    }
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
  uint8* memory = shared_memory();
  // no integer round trip: the compiler must still know the state space
  memory += (1024 - (uint64)memory % 1024) % 1024;
  Pipeline pipeline = pipeline_of(memory);
  start(pipeline);
  // Warp-uniform for the compiler: descriptors stay in uniform registers.
  const int group = __shfl_sync(~0u, threadIdx.x / 128, 0);
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
