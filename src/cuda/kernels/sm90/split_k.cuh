// Split-K for the tiles of the tail wave: the kSplits CTAs of a cluster split the K range of each
// of these tiles, and sm90/cluster_reduce.cuh adds their accumulators through DSMEM. Requires the
// generated header (kBlockK, kSplits; 1: no tile is split) and args.whole_tiles, the work items
// that are whole tiles: a multiple of the grid. A split tile is always the last work item of its
// CTA.

static const bool kHasEmptyTiles = false;  // tiles without K-blocks
__device__ inline int first_k(const Args&, int block) { return block * kBlockK; }

__device__ inline bool is_split_tile(const Args& args, int number) {
  return kSplits > 1 && number >= (int)args.whole_tiles;
}
__device__ inline int work_count(const Args& args);
// The CTA's last work item, if it is a split tile.
__device__ inline int split_work_of_cta(const Args& args) {
  return (int)args.whole_tiles + (int)blockIdx.x;
}
// Whole tiles that the CTA processes before its split tile.
__device__ inline int waves_before_split(const Args& args) {
  return kHasWholeTiles ? (int)args.whole_tiles / (int)gridDim.x : 0;
}
// The same for all CTAs of the cluster.
__device__ inline bool has_split_tile(const Args& args) {
  return kSplits > 1 && split_work_of_cta(args) < work_count(args);
}
// Work items for `tiles` tiles.
__device__ inline int count_work(const Args& args, int tiles) {
  return kSplits == 1 ? tiles : (tiles - (int)args.whole_tiles) * kSplits + (int)args.whole_tiles;
}
// The tile of a work item. The splits of a tile are consecutive work items: the CTAs of a cluster.
__device__ inline int tile_of_work(const Args& args, int number) {
  if (!is_split_tile(args, number)) return number;
  return (int)args.whole_tiles + (number - (int)args.whole_tiles) / kSplits;
}
// K range of the work item: every split gets at least one of the `blocks` K-blocks, the first ones
// one more where kSplits does not divide them.
template <class WorkTile>
__device__ inline void set_k_range(const Args& args, int number, int blocks, WorkTile& work) {
  work.first = 0;
  work.count = blocks;
  if (!is_split_tile(args, number)) return;
  const int part = (number - (int)args.whole_tiles) % kSplits;
  const int each = blocks / kSplits, more = blocks - each * kSplits;
  work.first = part * each + min(part, more);
  work.count = each + (part < more);
}
