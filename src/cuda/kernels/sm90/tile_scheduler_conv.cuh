// Tile scheduler of the persistent implicit-GEMM convolution. Requires sm90/split_k.cuh or
// sm90/stream_k.cuh and the generated header (kTileM, kTileN, kCluster, kPhases: residues of the
// output modulo the stride, backward-data only; kInterleavesPhases, args.phases[], .tile_count,
// .tiles_n, .group_m, .k_blocks). Tiles are split along K only where kPhases is 1.
#include "lib/divide.cuh"

__device__ inline int block_of_cluster() { return kCluster == 1 ? 0 : (int)blockIdx.x % kCluster; }

// Layout of one phase in args.phases[]. Extents count the phase's pixels, padding of lines
// included; Result are those that exist. Lower is the input coordinate at which the window of pixel
// 0 begins. Pixel i of an axis is output pixel first + i * args.spread.
enum PhaseWord {
  kFirstWork,  // index of its first work item
  kTilesM,     // in units of a cluster's CTAs
  kPixels,     // of all images
  kMap,        // index of its TMA im2col map
  kFirstTap, kTaps, kMagicTaps,
  kExtentW, kExtentH, kExtentD,
  kMagicW, kMagicH, kMagicD,
  kLowerW, kLowerH, kLowerD,
  kFirstW, kFirstH, kFirstD,
  kResultW, kResultH, kResultD,
  kPlanes,  // of its filter taps, all with the same number of taps
  kPhaseWords
};

static const bool kHasEmptyWork = kPhases > 1;  // pixels that no filter tap reaches
static const int kTmaWarpRegisters = kPhases > 1 ? 56 : 40;  // of the TMA producer warpgroup

struct WorkTile {
  int m, n;          // first row and column
  int group, phase;
  int first, count;  // K-blocks
};

__device__ inline int64 phase_word(const Args& args, int phase, int word) {
  return args.phases[kPhases == 1 ? word : phase * kPhaseWords + word];
}

// Work items of one cluster; its CTAs process vertically adjacent tiles.
__device__ inline int work_count(const Args& args) {
  return count_work(args, (int)args.tile_count);
}
__device__ inline int first_work() { return (int)blockIdx.x / kCluster; }
__device__ inline int work_step() { return (int)gridDim.x / kCluster; }

// kInterleavesPhases (all phases have the same number of tiles): consecutive work items belong to
// different phases, so that interleaved output pixels are written at about the same time, and every
// CTA processes all phases. Otherwise phases follow one another. Within a phase: group by group of
// channels; within a group bands of group_m rows of tiles, column by column, so that the rows of
// the band and the filter columns stay in L2.
__device__ inline WorkTile work_of(const Args& args, int piece) {
  WorkTile work;
  int number = tile_of_work(args, piece);
  work.phase = 0;
  if constexpr (kInterleavesPhases) {
    const int round = number / kPhases;
    // With 4 phases a CTA cycles through them and shifts by one after every 4th tile, so that each
    // ping-pong warpgroup processes all phases, too.
    work.phase = (number + round + round / work_step()) % kPhases;
    number = round;
  } else if constexpr (kPhases > 1) {
    while (work.phase + 1 < kPhases && number >= (int)phase_word(args, work.phase + 1, kFirstWork))
      ++work.phase;
    number -= (int)phase_word(args, work.phase, kFirstWork);
  }
  const int tiles_n = (int)args.tiles_n, tiles_m = (int)phase_word(args, work.phase, kTilesM);
  const int per_group = tiles_m * tiles_n;
  work.group = number / per_group;
  const int of_group = number - work.group * per_group, per_band = (int)args.group_m * tiles_n;
  const int band = of_group / per_band, of_band = of_group - band * per_band;
  const int first_row = band * (int)args.group_m;
  const int rows = min((int)args.group_m, tiles_m - first_row);
  const int column = of_band / rows;
  work.m = ((first_row + of_band - column * rows) * kCluster + block_of_cluster()) * kTileM;
  work.n = column * kTileN;
  set_k_range(args, piece, (int)(phase_word(args, work.phase, kTaps) * args.k_blocks), work);
  return work;
}
