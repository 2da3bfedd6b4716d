// K range of the weight gradient of an expert: the rows of its groups, in K-blocks that are known
// on the device only. Replaces sm90/split_k.cuh; no tile is split. Requires the generated header
// (args.expert_blocks and args.row_blocks, written by moe/k_blocks.cuh).

static const bool kHasEmptyTiles = true;  // experts without rows

struct RowBlock {
  int begin, end;
  bool is_whole;  // full, so TMA can load it
};
__device__ inline RowBlock row_block(const Args& args, int block) {
  const uint4 words = ((const uint4*)args.row_blocks)[block];
  return {(int)words.x, (int)words.y, words.z != 0};
}
__device__ inline int first_k(const Args& args, int block) {
  return row_block(args, block).begin;
}

__device__ inline bool is_split_tile(const Args&, int) { return false; }
__device__ inline bool has_split_tile(const Args&) { return false; }
__device__ inline int count_work(const Args&, int tiles) { return tiles; }
__device__ inline int tile_of_work(const Args&, int number) { return number; }
template <class WorkTile>
__device__ inline void set_k_range(const Args& args, int, int, WorkTile& work) {
  const int* starts = (const int*)args.expert_blocks + work.batch;
  work.first = starts[0];
  work.count = starts[1] - starts[0];
}
