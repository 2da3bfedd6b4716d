// Tile scheduler of the persistent GEMM: maps the work index of a CTA to an output tile and a range
// of K-blocks. Requires sm90/split_k.cuh or sm90/stream_k.cuh and the generated header (kTileM,
// kTileN, kCluster, args.tiles_m, .tiles_n, .cluster_tiles, .k_blocks, .group_m).

__device__ inline int block_of_cluster() { return kCluster == 1 ? 0 : (int)blockIdx.x % kCluster; }

static const bool kHasEmptyWork = kHasEmptyTiles;
static const int kTmaWarpRegisters = 40;  // of the TMA producer warpgroup, after setmaxnreg

struct WorkTile {
  int m, n;          // first row and column
  int batch;
  int first, count;  // K-blocks
};

// Work items of one cluster; its CTAs process vertically adjacent tiles.
__device__ inline int work_count(const Args& args) {
  return count_work(args, (int)args.cluster_tiles);
}
__device__ inline int first_work() { return (int)blockIdx.x / kCluster; }
__device__ inline int work_step() { return (int)gridDim.x / kCluster; }

// Rasterisation: bands of group_m rows of tiles, column by column, so that the A rows of the band
// and the B columns in use stay in L2.
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
