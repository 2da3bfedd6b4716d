// y[few][many] = x[few][depth] * weights[many][depth] as gemm_skinny_rows.cuh has it, where
// warpgroups multiply (wgmma): weights go from shared memory to registers, become factors there;
// x, put in the order of the weights by gemm_skinny_order.cuh or gemm_skinny_digits.cuh, is the
// second factor, in shared memory. No lane that multiplies reads x, and one instruction multiplies
// 64 rows.
//
// A warpgroup has 64 rows, or two times 64, of each chunk, and every kWarpsK-th step of it. A piece
// is one step of 64 of its rows: a packet of row r and one of row r + 8 in each lane. Pieces are
// multiplied by gemm_skinny_group_pairs.cuh or gemm_skinny_group_digits.cuh.

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
  if constexpr (kClusterBlocks > 1) arrive_at_cluster();

  if (warp >= kWarps) {
    if (warp == kWarps)
      ask_for_chunks(args, walk, ring);
    else if (kOrdersHere)
      order_chunks(args, walk, ring, warp - kWarps - 1);
    if constexpr (kClusterBlocks > 1) {
      wait_for_cluster();
      cluster_barrier();  // that of the sums
    }
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
      float* const place_of_sums = (float*)(memory + (kSumsApart ? kRingBytes : 0));
      if constexpr (kClusterBlocks > 1)
        finish_in_cluster(args, place, sums, place_of_sums, warp);
      else
        finish_in_block(args, place, sums, place_of_sums, round, warp);
    }
  }
}
