// Tile scheduler of the grouped GEMM of a mixture of experts: the extents of the groups are known
// on the device only. Requires the generated header (kTileM, kTileN, kBlockK, kCluster = 1,
// args.tiles_n, .k_blocks) and args.row_tiles, the table that moe/group_tiles.cuh has written.

// No tile is split along K.
__device__ inline bool is_split_tile(const Args&, int) { return false; }
__device__ inline bool has_split_tile(const Args&) { return false; }
__device__ inline int first_k(const Args&, int block) { return block * kBlockK; }

static const bool kHasEmptyWork = true;  // rows that belong to no expert
static const int kTmaWarpRegisters = 40;  // of the TMA producer warpgroup, after setmaxnreg

__device__ inline int block_of_cluster() { return 0; }

struct WorkTile {
  int m, n;          // first row and column
  int row_end;       // of the group
  int batch;         // expert
  bool has_expert;
  int first, count;  // K-blocks
};

__device__ inline int work_count(const Args& args) {
  return *(const int*)args.row_tiles * (int)args.tiles_n;
}
__device__ inline int first_work() { return (int)blockIdx.x; }
__device__ inline int work_step() { return (int)gridDim.x; }

// All columns of one tile of rows, then the next: tiles of one expert are consecutive.
__device__ inline WorkTile work_of(const Args& args, int number) {
  const int tile = number / (int)args.tiles_n;
  const uint4 rows = ((const uint4*)args.row_tiles)[tile + 1];
  WorkTile work;
  work.m = (int)rows.x;
  work.n = (number - tile * (int)args.tiles_n) * kTileN;
  work.row_end = (int)rows.y;
  work.has_expert = (int)rows.z >= 0;
  work.batch = work.has_expert ? (int)rows.z : 0;
  work.first = 0;
  work.count = work.has_expert ? (int)args.k_blocks : 0;
  return work;
}
