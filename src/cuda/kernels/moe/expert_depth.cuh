// The depth of the gradient of an expert's weights: the rows of its groups, in blocks that the
// device alone knows. In place of sm90/split_work.cuh; all tiles are whole. Comes after a kernel's
// head, which has args.expert_blocks and args.row_blocks (moe/depth_blocks.cuh).

static const bool kHasEmptyTiles = true;  // experts without rows

struct RowBlock {
  int begin, end;
  bool is_whole;  // as the copy engine brings it
};
__device__ inline RowBlock row_block(const Args& args, int block) {
  const uint4 words = ((const uint4*)args.row_blocks)[block];
  return {(int)words.x, (int)words.y, words.z != 0};
}
__device__ inline int first_depth(const Args& args, int block) {
  return row_block(args, block).begin;
}

__device__ inline bool is_part(const Args&, int) { return false; }
__device__ inline bool has_part(const Args&) { return false; }
__device__ inline int count_parts(const Args&, int tiles) { return tiles; }
__device__ inline int tile_of_work(const Args&, int number) { return number; }
template <class Work>
__device__ inline void take_part(const Args& args, int, int, Work& work) {
  const int* starts = (const int*)args.expert_blocks + work.batch;
  work.first = starts[0];
  work.count = starts[1] - starts[0];
}
