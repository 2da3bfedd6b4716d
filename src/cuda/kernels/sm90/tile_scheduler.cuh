// Which tile a block computes when: blocks stay and take one piece of work after the other. Comes
// after sm90/split_k.cuh and a kernel's head, which has kTileM, kTileN, kCluster, and
// args.tiles_m, .tiles_n, .cluster_tiles, .k_blocks, .group_m.

__device__ inline int block_of_cluster() { return kCluster == 1 ? 0 : (int)blockIdx.x % kCluster; }

static const bool kHasEmptyWork = kHasEmptyTiles;
static const int kTmaWarpRegisters = 40;  // of a thread that only asks for tiles

struct WorkTile {
  int m, n;          // first row and column
  int batch;
  int first, count;  // blocks of depth
};

// Pieces of work of one cluster of blocks; its blocks take neighbouring tiles of rows.
__device__ inline int work_count(const Args& args) {
  return count_work(args, (int)args.cluster_tiles);
}
__device__ inline int first_work() { return (int)blockIdx.x / kCluster; }
__device__ inline int work_step() { return (int)gridDim.x / kCluster; }

// Tiles in bands of group_m rows of tiles, column by column: the band's rows and the columns stay
// in the L2 cache while they are used.
__device__ inline WorkTile work_of(const Args& args, int number) {
  const int tiles_n = (int)args.tiles_n, tiles_m = (int)args.tiles_m;
  const int per_batch = tiles_m * tiles_n, tile = tile_of_work(args, number);
  WorkTile work;
  work.batch = tile / per_batch;
  const int of_batch = tile - work.batch * per_batch, per_band = (int)args.group_m * tiles_n;
  const int band = of_batch / per_band, of_band = of_batch - band * per_band;
  const int first_row = band * (int)args.group_m;
  const int rows = min((int)args.group_m, tiles_m - first_row);
  const int column = of_band / rows;
  work.m = ((first_row + of_band - column * rows) * kCluster + block_of_cluster()) * kTileM;
  work.n = column * kTileN;
  set_k_range(args, number, (int)args.k_blocks, work);
  return work;
}
