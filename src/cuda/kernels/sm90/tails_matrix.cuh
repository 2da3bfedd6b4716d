// Where a tile of batched matrices stores the partial results of tail reductions. Requires
// sm90/tile_scheduler.cuh and lib/gemm_tails.cuh.

__device__ inline TailPlace tail_place(const Args& args, const WorkTile& work) {
  return {(Index)work.batch, (Index)(work.m / kTileM), (Index)(work.n / kTileN), (Index)work.n,
          (Index)args.columns};
}
