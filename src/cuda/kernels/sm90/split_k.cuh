// Tiles that do not fill the last round of blocks: kSplits blocks of a cluster share the depth of
// each (sm90/cluster_reduce.cuh adds what they have summed up). Comes after a kernel's head, which has
// kBlockK, kSplits (1: all tiles are whole) and args.whole_tiles: the pieces of work that are
// whole tiles, as many for each block, and what comes after them is a block's last one.

static const bool kHasEmptyTiles = false;  // without depth
__device__ inline int first_k(const Args&, int block) { return block * kBlockK; }

__device__ inline bool is_split_tile(const Args& args, int number) {
  return kSplits > 1 && number >= (int)args.whole_tiles;
}
__device__ inline int work_count(const Args& args);
// The block's last piece of work, if it is a part.
__device__ inline int split_work_of_cta(const Args& args) {
  return (int)args.whole_tiles + (int)blockIdx.x;
}
// Whole tiles of the block, which come before it.
__device__ inline int waves_before_split(const Args& args) {
  return kHasWholeTiles ? (int)args.whole_tiles / (int)gridDim.x : 0;
}
// Whether it is, as for all blocks of the cluster.
__device__ inline bool has_split_tile(const Args& args) {
  return kSplits > 1 && split_work_of_cta(args) < work_count(args);
}
// Pieces of work where there are so many tiles.
__device__ inline int count_work(const Args& args, int tiles) {
  return kSplits == 1 ? tiles : (tiles - (int)args.whole_tiles) * kSplits + (int)args.whole_tiles;
}
// The tile of a piece of work. The parts of a tile are neighbours: those of a cluster.
__device__ inline int tile_of_work(const Args& args, int number) {
  if (!is_split_tile(args, number)) return number;
  return (int)args.whole_tiles + (number - (int)args.whole_tiles) / kSplits;
}
// Which of its `blocks` of depth are the piece's; every part has some, the first ones one more.
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
