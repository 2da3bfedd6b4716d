// Tiles that do not fill the last round of blocks: kSplits blocks of a cluster share the depth of
// each (sm90/join_parts.cuh adds what they have summed up). Comes after a kernel's head, which has
// kTileDepth, kSplits (1: all tiles are whole) and args.whole_work: the pieces of work that are
// whole tiles, as many for each block, and what comes after them is a block's last one.

static const bool kHasEmptyTiles = false;  // without depth
__device__ inline int first_depth(const Args&, int block) { return block * kTileDepth; }

__device__ inline bool is_part(const Args& args, int number) {
  return kSplits > 1 && number >= (int)args.whole_work;
}
__device__ inline int work_count(const Args& args);
// The block's last piece of work, if it is a part.
__device__ inline int part_of_block(const Args& args) {
  return (int)args.whole_work + (int)blockIdx.x;
}
// Whole tiles of the block, which come before it.
__device__ inline int rounds_before_part(const Args& args) {
  return kHasWhole ? (int)args.whole_work / (int)gridDim.x : 0;
}
// Whether it is, as for all blocks of the cluster.
__device__ inline bool has_part(const Args& args) {
  return kSplits > 1 && part_of_block(args) < work_count(args);
}
// Pieces of work where there are so many tiles.
__device__ inline int count_parts(const Args& args, int tiles) {
  return kSplits == 1 ? tiles : (tiles - (int)args.whole_work) * kSplits + (int)args.whole_work;
}
// The tile of a piece of work. The parts of a tile are neighbours: those of a cluster.
__device__ inline int tile_of_work(const Args& args, int number) {
  if (!is_part(args, number)) return number;
  return (int)args.whole_work + (number - (int)args.whole_work) / kSplits;
}
// Which of its `blocks` of depth are the piece's; every part has some, the first ones one more.
template <class Work>
__device__ inline void take_part(const Args& args, int number, int blocks, Work& work) {
  work.first = 0;
  work.count = blocks;
  if (!is_part(args, number)) return;
  const int part = (number - (int)args.whole_work) % kSplits;
  const int each = blocks / kSplits, more = blocks - each * kSplits;
  work.first = part * each + min(part, more);
  work.count = each + (part < more);
}
