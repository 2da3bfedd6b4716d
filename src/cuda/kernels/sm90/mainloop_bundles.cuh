// The products of a convolution of few channels and filters. All channels of a pixel are one row,
// brought to shared memory once for all taps as in sm90/mainloop_windows.cuh. Groups that lie side
// by side (a bundle) fill such a row together; each multiplies its own part of it. The filters of a
// bundle stay where they are while its tiles are multiplied: a block has tiles that follow one
// another. Comes after a kernel's head, sm90/schedule_pixels.cuh, lib/product_rows.cuh,
// lib/ptx_wgmma_product.cuh, sm90/load_pixels.cuh and sm90/warpgroups.cuh. The head has
//   kSide           groups of a bundle; each has WGMMA_N columns of the kTileN
//   kGroupBytes     of the depth of a group: kSide of them are kRowBytes, 32 to 128
//   kTapCount, tap_row(tap), tap_place(tap)  rows that a tap is further, its place in a filter
//   kStages         of filters of a bundle
//   kWindowStages   a multiple of kConsumers: a stage is always read by the same warpgroup, who
//                   has therefore waited for its round before
// args.map_filters has (contiguous, other, tap) of a group, all taps of it in one copy.
#include "lib/ptx_tma.cuh"
#include "lib/ptx_wgmma.cuh"

static const int kPartBytes = WGMMA_N * kGroupBytes;  // of a tap of a group
static const int kGroupFilterBytes = kTapCount * kPartBytes;
static const int kFilterBytes = kSide * kGroupFilterBytes;

struct Ring {
  uint8 *windows, *filters, *slabs;
  Mbarrier *full, *empty, *full_window, *empty_window;
  StageWalk<kStages> filter;
  StageWalk<kWindowStages> window;
};

__device__ inline Ring ring_of(uint8* memory) {
  Ring ring;
  ring.windows = memory;
  ring.filters = ring.windows + kWindowStages * kStageBytesA;
  ring.slabs = ring.filters + kStages * kFilterBytes;
  ring.full = (Mbarrier*)(ring.slabs + kConsumers * 4 * kSlabBytes);
  ring.empty = ring.full + kStages;
  ring.full_window = ring.empty + kStages;
  ring.empty_window = ring.full_window + kWindowStages;
  ring.filter = {0, 0};
  ring.window = {0, 0};
  return ring;
}

__device__ inline void start(const Ring& ring) {
  if (threadIdx.x == 0) {
    for (int s = 0; s < kStages; ++s) {
      init_barrier(ring.full + s, 1);
      init_barrier(ring.empty + s, 4 * kConsumers);
    }
    for (int s = 0; s < kWindowStages; ++s) {
      init_barrier(ring.full_window + s, 1);
      init_barrier(ring.empty_window + s, 4);
    }
    fence_barriers();
  }
  __syncthreads();
}

// A block's tiles, from its first to before the next block's first.
__device__ inline int work_begin(const Args& args, int block) {
  return (int)((int64)work_count(args) * block / (int64)gridDim.x);
}

// One thread.
__device__ inline void produce(const Args& args, Ring ring) {
  const int end = work_begin(args, blockIdx.x + 1);
  int bundle = -1;
  for (int number = work_begin(args, blockIdx.x); number < end; ++number, ring.window.next()) {
    const Work work = work_of(args, number);
    if (work.group != bundle) {
      if (bundle >= 0) ring.filter.next();
      bundle = work.group;
      const int stage = ring.filter.stage;
      wait_for(ring.empty + stage, ring.filter.parity ^ 1);
      arrive_and_expect(ring.full + stage, kFilterBytes);
#pragma unroll 1
      for (int side = 0; side < kSide; ++side) {
        const int at[3] = {0, (bundle * kSide + side) * (kColumnsLie ? kGroupDepth : WGMMA_N), 0};
        load_box(ring.filters + stage * kFilterBytes + side * kGroupFilterBytes, args.map_filters,
                 ring.full + stage, at);
      }
    }
    const int stage = ring.window.stage;
    wait_for(ring.empty_window + stage, ring.window.parity ^ 1);
    arrive_and_expect(ring.full_window + stage, kStageBytesA);
    load_window(args, work, 0, ring.windows + stage * kStageBytesA, ring.full_window + stage);
  }
}

// All products of a tile, one after the other: each reads 64 rows of its group's part of the
// window and the filters of a tap.
__device__ inline void multiply_window(const Ring& ring,
                                       Sum (&sums)[kRowBlocks][kSide][WGMMA_N / 2]) {
  const int kColumnBytes = WGMMA_N * kElementBytes;
  const uint64 window = matrix_descriptor<kRowBytes>(
      ring.windows + ring.window.stage * kStageBytesA, 0, 8 * kRowBytes);
  const uint8* filters = ring.filters + ring.filter.stage * kFilterBytes;
  const uint64 filter = kTransposeB ? matrix_descriptor<kColumnBytes>(filters, 0, 8 * kColumnBytes)
                                    : matrix_descriptor<kGroupBytes>(filters, 0, 8 * kGroupBytes);
  const int kStep = kTransposeB ? kInstructionDepth * kColumnBytes : 32;
#pragma unroll
  for (int r = 0; r < kRowBlocks; ++r) keep_in_registers(sums[r]);
  fence_products();
#pragma unroll
  for (int tap = 0; tap < kTapCount; ++tap)
#pragma unroll
    for (int k = 0; k < kGroupBytes / 32; ++k)
#pragma unroll
      for (int side = 0; side < kSide; ++side)
#pragma unroll
        for (int r = 0; r < kRowBlocks; ++r)
          multiply(sums[r][side],
                   advance_descriptor(window, (tap_row(tap) + r * 64) * kRowBytes +
                                                  side * kGroupBytes + k * 32),
                   advance_descriptor(filter, side * kGroupFilterBytes +
                                                  tap_place(tap) * kPartBytes + k * kStep),
                   tap + k > 0);
  commit_products();
  wait_for_products<0>();
#pragma unroll
  for (int r = 0; r < kRowBlocks; ++r) keep_in_registers(sums[r]);
}

// A warpgroup: every kConsumers-th of the block's tiles. It goes along with all bundles, also those
// of which it has no tile.
__device__ inline void consume(const Args& args, Ring ring, int group) {
  const int warp = threadIdx.x / 32 % 4;
  const bool tells = threadIdx.x % 32 == 0;
  uint8* slab = ring.slabs + (group * 4 + warp) * kSlabBytes;
  const int begin = work_begin(args, blockIdx.x), end = work_begin(args, blockIdx.x + 1);
  TileTails tails;
  int bundle = -1, turn = 0;
  for (int number = begin; number < end; ++number, ring.window.next()) {
    const Work work = work_of(args, number);
    if (work.group != bundle) {
      if (bundle >= 0) {
        if (tells) arrive(ring.empty + ring.filter.stage);
        ring.filter.next();
      }
      bundle = work.group;
      wait_for(ring.full + ring.filter.stage, ring.filter.parity);
    }
    const bool is_own = turn == group;
    turn = turn + 1 < kConsumers ? turn + 1 : 0;
    if (!is_own) continue;
    wait_for(ring.full_window + ring.window.stage, ring.window.parity);
    Sum sums[kRowBlocks][kSide][WGMMA_N / 2];
    multiply_window(ring, sums);
    if (tells) arrive(ring.empty_window + ring.window.stage);
    tails.begin_tile(args, work);
#pragma unroll
    for (int r = 0; r < kRowBlocks; ++r)
      finish_tile_rows(args, work, slab, (const Sum(&)[kTileN / 2])sums[r],
                       work.m + r * 64 + warp * 16, tails);
    tails.end_tile(args, slab, group);
  }
  tails.end(args, group);
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
    give_registers<kProducerRegisters>();
    if (threadIdx.x == kConsumers * 128) produce(args, ring);
  } else {
    take_registers<kConsumerRegisters>();
    consume(args, ring, group);
  }
}
