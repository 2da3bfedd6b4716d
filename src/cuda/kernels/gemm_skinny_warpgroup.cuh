// Skinny GEMM on warpgroups, y[m][n] = x[m][k] * weights[n][k] by wgmma: weights are operand A,
// read from shared memory and dequantised in registers; x, repacked by gemm_skinny_repack.cuh or
// gemm_skinny_limbs.cuh, is operand B in shared memory. MMA lanes thus never read x, and one
// instruction multiplies 64 rows of weights.
//
// A warpgroup computes 64 rows, or twice 64, of each chunk, and every kWarpsK-th step of it. A
// piece is one step of 64 rows: in each lane a packet of row r and one of row r + 8. Pieces are
// multiplied by gemm_skinny_warpgroup_half2.cuh or gemm_skinny_warpgroup_limbs.cuh.

extern "C" __global__ void __launch_bounds__(kAllThreads, kBlocks)
    gemm_skinny_warpgroup(const __grid_constant__ Args args) {
  uint8* const memory = aligned_shared_memory();
  const int warp = __shfl_sync(0xffffffffu, (int)threadIdx.x / 32, 0);  // the same for all lanes
  ChunkPipeline iter(args, memory, (Mbarrier*)(memory + kAllBytes));
  // Measured back to back: clusters gain up to 13 % if the next launch, the repack pre-pass,
  // becomes resident from the start. Without clusters that gains nothing or loses, so these CTAs
  // trigger it with their last chunk.
  if constexpr (kClusterBlocks > 1) launch_dependent_grids();
  if (warp == kWarps) {
    // The producer warp issues the first loads before the other warps may use the barriers.
    if (threadIdx.x % 32 == 0) {
      iter.init(1 + kArrivingRepackWarps * 32, kThreads);
      if constexpr (kRepacksInCta)
        for (int s = 0; s < kStages; ++s) init_barrier(iter.x_full + s, 1);
      fence_barriers();
      fence_proxy_async();
    }
    __syncwarp();
    const int early = stages_before_pdl_wait(args);
    ChunkPipeline of_weights = iter;
#pragma unroll 1
    for (int s = 0; s < early && of_weights.has_more(args); ++s, of_weights.next_chunk())
      load_weights(args, of_weights);
    wait_on_dependent_grids();
#pragma unroll 1
    for (int s = 0; s < kStages && iter.has_more(args); ++s, iter.next_chunk()) {
      if (s >= early) load_weights(args, iter);
      load_x(args, iter);
    }
  }
  __syncthreads();
  if constexpr (kClusterBlocks > 1) cluster_arrive_relaxed();

  if (warp >= kWarps) {
    if (warp == kWarps)
      load_chunks(args, iter);
    else if (kRepacksInCta)
      repack_chunks(args, iter, warp - kWarps - 1);
    if constexpr (kClusterBlocks > 1) {
      cluster_wait();
      cluster_sync();  // matches the one of reduce_in_cluster()
    }
  } else {
    wait_on_dependent_grids();  // epilogue operands may come from the previous launch
    WarpgroupLane lane(warp);
    int round = 0;
    Coord coord;
#pragma unroll
    for (int axis = 0; axis < kRank - 2; ++axis) coord.batch[axis] = 0;
#pragma unroll 1
    for (; iter.has_more(args); iter.unit += iter.every) {
      coord.first_row = (Index)iter.unit * kRows;
      WarpgroupAccumulators acc;
#pragma unroll 1
      for (int chunk = 0; chunk < iter.chunks; ++chunk, iter.next()) {
        lane.stage = iter.buffer();
        iter.consumer_wait();
        add_stage(lane, acc);
        arrive(iter.empty + iter.stage);
      }
      recompute_nonfinite(args, iter, lane, coord, acc);
      float* const reduction_smem = (float*)(memory + (kOwnReductionSmem ? kPipelineBytes : 0));
      if constexpr (kClusterBlocks > 1)
        reduce_in_cluster(args, coord, acc, reduction_smem, warp);
      else
        reduce_in_cta(args, coord, acc, reduction_smem, round, warp);
    }
  }
}
