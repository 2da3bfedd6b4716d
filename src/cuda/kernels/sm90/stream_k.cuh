// Stream-K for the tail waves: the K-blocks of all remaining tiles form one sequence, and every
// cluster gets an equal range of it, whatever the tile boundaries. A range holds the end of one
// tile, whole tiles, and the begin of another. Replaces sm90/split_k.cuh; sm90/stream_k_fixup.cuh
// adds the partials of tiles that span ranges. Requires the generated header (kCluster, kBlockK)
// and args.whole_tiles (work items that are whole tiles, a multiple of the clusters), .tile_stages
// (K-blocks of a tile), .range_stages (of a range; the first .longer_ranges have one more), .flags
// and .flag_count.
#include "lib/ptx_grid_dependency.cuh"

static const bool kHasEmptyTiles = false;  // tiles without K-blocks
__device__ inline int first_k(const Args&, int block) { return block * kBlockK; }

__device__ inline int block_of_cluster();
__device__ inline bool has_split_tile(const Args&) {
  return false;
}  // no reduction within clusters

__device__ inline int range_count() { return (int)gridDim.x / kCluster; }
// Ranges are assigned in reverse order of CTAs: a CTA that waits for the partials of following
// ranges waits for CTAs with lower indices, which were launched earlier (forward progress).
__device__ inline int own_range() { return range_count() - 1 - (int)blockIdx.x / kCluster; }
__device__ inline int block_of_range(int range) {
  return (range_count() - 1 - range) * kCluster + block_of_cluster();
}
__device__ inline int range_begin(const Args& args, int range) {
  return range * (int)args.range_stages + min(range, (int)args.longer_ranges);
}

// End of the cluster's work items: the whole tiles, then one item per tile of its range.
__device__ inline int count_work(const Args& args, int) {
  const int begin = range_begin(args, own_range()), end = range_begin(args, own_range() + 1);
  const int stages = (int)args.tile_stages;
  return (int)args.whole_tiles + ((end - 1) / stages - begin / stages + 1) * range_count();
}
__device__ inline int tile_of_work(const Args& args, int number) {
  const int whole = (int)args.whole_tiles;
  if (number < whole) return number;
  return whole + range_begin(args, own_range()) / (int)args.tile_stages +
         (number - whole) / range_count();
}
template <class WorkTile>
__device__ inline void set_k_range(const Args& args, int number, int blocks, WorkTile& work) {
  work.first = 0;
  work.count = blocks;
  if (number < (int)args.whole_tiles) return;
  const int of_tile = (tile_of_work(args, number) - (int)args.whole_tiles) * blocks;
  work.first = max(range_begin(args, own_range()) - of_tile, 0);
  work.count = min(range_begin(args, own_range() + 1) - of_tile, blocks) - work.first;
}

// Resets the flags of sm90/stream_k_fixup.cuh in a launch before the GEMM.
extern "C" __global__ void __launch_bounds__(256) reset_flags(const __grid_constant__ Args args) {
  launch_dependent_grids();
  for (int i = threadIdx.x; i < (int)args.flag_count; i += 256) ((uint32*)args.flags)[i] = 0;
}
