// y[few][many] = x[few][depth] * weights[many][depth] as gemm_skinny_rows.cuh has it, where
// warpgroups multiply (wgmma): weights go from shared memory to registers, become factors there;
// x, put in the order of the weights by gemm_skinny_order.cuh or gemm_skinny_digits.cuh, is the
// second factor, in shared memory. No lane that multiplies reads x, and one instruction multiplies
// 64 rows.
//
// A warpgroup has 64 rows, or two times 64, of each chunk, and every kWarpsK-th step of it. A piece
// is one step of 64 of its rows: a packet of row r and one of row r + 8 in each lane. Pieces are
// multiplied by gemm_skinny_group_pairs.cuh or gemm_skinny_group_digits.cuh.
#include "lib/ptx_barrier.cuh"

static const int kSumFloats = kWarpsK * kFewAtOnce * kPitch;
static const int kSumPlaces = kClusterBlocks == 1 ? 2 : 1;
static const int kAllBytes = kStages * kStageBytes + kSumPlaces * kSumFloats * 4;  // then barriers

// The end of a unit: sums of warps, 8 rows of x at a time, in two places of shared memory in turn:
// whoever comes to a place again has met the others at the other place meanwhile. Blocks of a
// cluster, which have one unit, add theirs between two barriers of the cluster, all rows of x at
// once.
__device__ inline void finish_group(const Args& args, const Place& place, const GroupSums& products,
                                    float* memory, int& round, int warp) {
  const int rank = blockIdx.x % kClusterBlocks;
#pragma unroll 1
  for (int first = 0; first < kFew; first += kFewAtOnce, ++round) {
    float* const sums = memory + round % kSumPlaces * kSumFloats;
    if (has_rows(warp))
      products.visit([&](int row, int m, float sum) {
        if (kFewAtOnce == kFew || (unsigned)(m - first) < (unsigned)kFewAtOnce)
          sums[(warp / kWarpsN * kFewAtOnce + m - first) * kPitch + warp % kWarpsN * kWarpRows +
               row] = sum;
      });
    group_barrier<kThreads>(0);
    add_and_store<kClusterBlocks, kVectorY>(args, place, first, sums, rank);
  }
}

extern "C" __global__ void __launch_bounds__(kAllThreads, kBlocks)
    gemm_skinny_group(const __grid_constant__ Args args) {
  uint8* const start = shared_memory();
  // Where the swizzle's pattern begins. Not rounded as an integer: it stays known to be shared.
  uint8* const memory = start + (1024 - (uint64)start % 1024) % 1024;
  Mbarrier* const barriers = (Mbarrier*)(memory + kAllBytes);
  const Ring ring = {memory, barriers, barriers + kStages, barriers + 2 * kStages};
  const int warp = __shfl_sync(0xffffffffu, (int)threadIdx.x / 32, 0);  // the same for all lanes
  GroupWalk walk(args);
  // Measured in a row: clusters gain up to 13 % where the next launch, which puts x in order, is
  // there from the start; other blocks gain nothing or lose, they let it in with their last chunk.
  if constexpr (kClusterBlocks > 1) let_next_launch_start();
  if (warp == kWarps) {
    // Nobody else knows the barriers yet, but the first bytes are on their way.
    if (threadIdx.x % 32 == 0) {
#pragma unroll
      for (int s = 0; s < kStages; ++s) {
        init_barrier(ring.full + s, 1 + kOrderers * 32);
        init_barrier(ring.read + s, kThreads);
        if (kOrdersHere) init_barrier(ring.brought + s, 1);
      }
      fence_barriers();
      fence_shared_writes();
    }
    __syncwarp();
    const int early = early_stages(args);
    GroupWalk of_weights = walk;
#pragma unroll 1
    for (int s = 0; s < early && of_weights.has_more(args); ++s, of_weights.next())
      ask_for_weights(args, of_weights, ring);
    wait_for_launch_before();
#pragma unroll 1
    for (int s = 0; s < kStages && walk.has_more(args); ++s, walk.next()) {
      if (s >= early) ask_for_weights(args, walk, ring);
      ask_for_x(args, walk, ring);
    }
  }
  __syncthreads();

  if (warp >= kWarps) {
    if (warp == kWarps)
      ask_for_chunks(args, walk, ring);
    else if (kOrdersHere)
      order_chunks(args, walk, ring, warp - kWarps - 1);
    if constexpr (kClusterBlocks > 1) cluster_barrier();  // that of the sums
  } else {
    wait_for_launch_before();  // operands of the end may come from it
    GroupLane lane(warp);
    int round = 0;
    Place place;
#pragma unroll
    for (int axis = 0; axis < kRank - 2; ++axis) place.batch[axis] = 0;
#pragma unroll 1
    for (; walk.has_more(args); walk.unit += walk.every) {
      place.first_row = (Index)walk.unit * kRows;
      GroupSums sums;
#pragma unroll 1
      for (int chunk = 0; chunk < walk.chunks; ++chunk, walk.next_stage()) {
        lane.stage = memory + walk.stage * kStageBytes;
        wait_for(ring.full + walk.stage, walk.parity);
        add_stage(lane, sums);
        arrive(ring.read + walk.stage);
      }
      mend_sums(args, walk, lane, place, sums);
      finish_group(args, place, sums, (float*)(memory + kStages * kStageBytes), round, warp);
    }
  }
  if constexpr (kClusterBlocks > 1) cluster_barrier();  // others may still read sums
}
