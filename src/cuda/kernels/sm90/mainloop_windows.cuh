// The products of a convolution whose windows stay in shared memory: pixels are brought there once
// for all taps of a plane, padded lines one after the other, and a tap's pixels are the same rows
// some rows further. Comes after a kernel's head, sm90/schedule_pixels.cuh, lib/product_rows.cuh,
// lib/ptx_wgmma_product.cuh, sm90/load_pixels.cuh, sm90/ask_ahead.cuh and sm90/warpgroups.cuh. The
// head has kStages of filters, kWindowStages of pixels, and kResident: the filters of all taps stay
// where they are. Where pixels are computed, sm90/compute_pixels.cuh comes before it, too.
#include "lib/ptx_cluster.cuh"
#include "lib/ptx_tma.cuh"
#include "lib/ptx_wgmma.cuh"

struct Ring {
  uint8 *windows, *filters, *slabs;
  Mbarrier *full, *empty, *full_window, *empty_window, *turns;
  StageWalk<kStages> filter;
  StageWalk<kWindowStages> window;
};

__device__ inline Ring ring_of(uint8* memory) {
  Ring ring;
  ring.windows = memory;
  ring.filters = ring.windows + kWindowStages * kStageBytesA;
  ring.slabs = ring.filters + kStages * kStageBytesB;
  ring.full = (Mbarrier*)(ring.slabs + kConsumers * 4 * kSlabBytes);
  ring.empty = ring.full + kStages;
  ring.full_window = ring.empty + kStages;
  ring.empty_window = ring.full_window + kWindowStages;
  ring.turns = ring.empty_window + kWindowStages;
  ring.filter = {0, 0};
  ring.window = {0, 0};
  return ring;
}

__device__ inline void start(const Ring& ring) {
  if (threadIdx.x == 0) {
    for (int s = 0; s < kStages; ++s) {
      init_barrier(ring.full + s, 1);
      init_barrier(ring.empty + s, 4 * kSharers * kCluster);
    }
    for (int s = 0; s < kWindowStages; ++s) {
      init_barrier(ring.full_window + s, kComputesPixels ? kComputingWarps : 1);
      init_barrier(ring.empty_window + s, 4 * kSharers);
    }
    for (int group = 0; group < kConsumers; ++group) init_barrier(ring.turns + group, 4);
    fence_barriers();
  }
  if constexpr (kCluster > 1)
    meet_cluster();
  else
    __syncthreads();
}

// Windows of a piece of work: of every block of channels those of all planes.
__device__ inline int window_count(const Args& args, const Work& work) {
  return (int)args.depth_blocks * plane_count(args, work.phase);
}

// One thread, or the warps that compute.
template <class A>
__device__ inline void produce_windows(const A& args, Ring ring) {
  for (int number = first_work(); number < work_count(args); number += work_step()) {
    const Work work = work_of(args, number);
    if (work.count == 0) continue;
    for (int i = 0; i < window_count(args, work); ++i, ring.window.next()) {
      const int stage = ring.window.stage;
      uint8* window = ring.windows + stage * kStageBytesA;
      const auto ready = [&] { wait_for(ring.empty_window + stage, ring.window.parity ^ 1); };
      if constexpr (kComputesPixels) {
        compute_window(args, work, i, window, ready);
        fence_shared_writes();
        __syncwarp();
        if (threadIdx.x % 32 == 0) arrive(ring.full_window + stage);
      } else {
        ready();
        arrive_and_expect(ring.full_window + stage, kStageBytesA);
        load_window(args, work, i, window, ring.full_window + stage);
      }
    }
  }
}
// Another one.
__device__ inline void produce_filters(const Args& args, Ring ring) {
  for (int number = first_work(); number < work_count(args); number += work_step()) {
    const Work work = work_of(args, number);
    for (int block = 0; block < work.count; ++block, ring.filter.next()) {
      const int stage = ring.filter.stage;
      wait_for(ring.empty + stage, ring.filter.parity ^ 1);
      arrive_and_expect(ring.full + stage, kStageBytesB);
      load_filters(args, work, block, ring.filters + stage * kStageBytesB, ring.full + stage);
    }
    if constexpr (kResident) return;
  }
}

// The warp has read a stage; all blocks whose loads write to it are told.
__device__ inline void release_filter(const Ring& ring, int stage) {
  const int lane = threadIdx.x % 32;
  if constexpr (kResident) return;
  if constexpr (kCluster > 1) {
    if (lane < kCluster) arrive_at_block(ring.empty + stage, lane);
  } else {
    if (lane == 0) arrive(ring.empty + stage);
  }
}
__device__ inline void release_window(const Ring& ring, int stage) {
  if (threadIdx.x % 32 == 0) arrive(ring.empty_window + stage);
}

// The products of a tap, started.
__device__ inline void start_products(const Ring& ring, int first_row, bool keeps,
                                      Sum (&sums)[kRowBlocks][WGMMA_N / 2]) {
  const uint64 a = tile_descriptor<false>(ring.windows + ring.window.stage * kStageBytesA +
                                          first_row * kDepthBytes);
  const uint64 b = tile_descriptor<kTransposeB>(ring.filters + ring.filter.stage * kStageBytesB);
  keep_in_registers(sums);
  fence_products();
#pragma unroll
  for (int k = 0; k < kTileDepth / kInstructionDepth; ++k)
#pragma unroll
    for (int r = 0; r < kRowBlocks; ++r)
      multiply(sums[r], advance_descriptor(a, r * rows_step<false>() + k * depth_step<false>()),
               advance_descriptor(b, k * depth_step<kTransposeB>()), keeps || k > 0);
  commit_products();
  keep_in_registers(sums);
}

// All taps of all blocks of channels. What was read is given back when the products that follow
// have been started. `meanwhile` is done once, while the first ones are made.
template <class Meanwhile>
__device__ inline void multiply_windows(const Args& args, Ring& ring, const Work& work,
                                        const Turns& turns, int first_row,
                                        Sum (&sums)[kRowBlocks][WGMMA_N / 2], Meanwhile meanwhile) {
  const int all_taps = (int)phase_word(args, work.phase, kTaps);
  const int taps = all_taps / (all_taps == 0 ? 1 : plane_count(args, work.phase));
  const int windows = taps == 0 ? 0 : window_count(args, work);
  const int64* tap_words = args.taps + phase_word(args, work.phase, kFirstTap);
  const auto row_of = [&](int tap) {
    return first_row + __shfl_sync(~0u, window_row(tap_words[tap]), 0);
  };
  int filter_before = -1, window_before = -1;
  int row = row_of(0);  // those of another plane are the same
  for (int window = 0; window < windows; ++window, ring.window.next()) {
    wait_for(ring.full_window + ring.window.stage, ring.window.parity);
    for (int tap = 0; tap < taps; ++tap, ring.filter.next()) {
      wait_for(ring.full + ring.filter.stage, kResident ? 0 : ring.filter.parity);
      if (window == windows - 1 && tap == taps - 1) turns.pass_on(ring.turns);
      start_products(ring, row, window + tap > 0, sums);
      if (window + tap == 0) meanwhile();
      row = row_of(tap + 1 < taps ? tap + 1 : 0);
      wait_for_products<1>();
      if (filter_before >= 0) release_filter(ring, filter_before);
      if (window_before >= 0) release_window(ring, window_before);
      filter_before = ring.filter.stage;
      window_before = -1;
    }
    window_before = ring.window.stage;
  }
  wait_for_products<0>();
  keep_in_registers(sums);
  if (filter_before >= 0) release_filter(ring, filter_before);
  if (window_before >= 0) release_window(ring, window_before);
}

// A warpgroup.
__device__ inline void consume(const Args& args, Ring ring, int group) {
  const int warp = threadIdx.x / 32 % 4;
  uint8* slab = ring.slabs + (group * 4 + warp) * kSlabBytes;
  const int first_row = kPingPong ? 0 : group * kRowBlocks * 64;
  Turns turns = {group, group == 0};
  TileTails tails;
  int turn = 0;
  for (int number = first_work(); number < work_count(args); number += work_step()) {
    const Work work = work_of(args, number);
    if (kPingPong && turn++ % kConsumers != group) {
      if (work.count == 0) continue;
      ring.window.skip(window_count(args, work));
      ring.filter.skip(work.count);
      continue;
    }
    ask_ahead<false>(args, work, first_row, slab);
    const auto meanwhile = [&] { ask_ahead<true>(args, work, first_row, slab); };
    Sum sums[kRowBlocks][WGMMA_N / 2];
    turns.wait(ring.turns);
    if (kResident) ring.filter = {0, 0};
    if (kHasEmptyWork && work.count == 0) {
      turns.pass_on(ring.turns);
      meanwhile();
    }
    multiply_windows(args, ring, work, turns, first_row, sums, meanwhile);
    if (kHasEmptyWork && work.count == 0) {
#pragma unroll
      for (int r = 0; r < kRowBlocks; ++r)
#pragma unroll
        for (int i = 0; i < WGMMA_N / 2; ++i) sums[r][i] = 0;
    }
    tails.begin_tile(args, work);
#pragma unroll
    for (int r = 0; r < kRowBlocks; ++r)
      finish_tile_rows(args, work, slab, sums[r], work.m + first_row + r * 64 + warp * 16, tails);
    tails.end_tile(args, slab, group);
  }
  tails.end(args, group);
  wait_for_results();
}

extern "C" __global__ void __launch_bounds__(kThreads, kBlocksPerProcessor)
    product(const __grid_constant__ Args args) {
  uint8* memory = shared_memory();
  memory += (1024 - (uint64)memory % 1024) % 1024;  // no round trip: it stays known to be shared
  Ring ring = ring_of(memory);
  start(ring);
  // The same for a whole warp, as the compiler can see: descriptors stay in uniform registers.
  const int group = __shfl_sync(~0u, threadIdx.x / 128, 0);
  if (group == kConsumers) {
    if constexpr (kConsumers > 1) give_registers<kProducerRegisters>();
    const int thread = (int)threadIdx.x % 128;
    if (kComputesPixels ? thread < kComputingWarps * 32 : thread == 0) produce_windows(args, ring);
    if (thread == kComputingWarps * 32) produce_filters(args, ring);
    __syncwarp();  // the barrier below takes whole warps
  } else {
    if constexpr (kConsumers > 1) take_registers<kConsumerRegisters>();
    consume(args, ring, group);
  }
  // Others may still tell this block's barriers that they are done.
  if constexpr (kCluster > 1) meet_cluster();
}
