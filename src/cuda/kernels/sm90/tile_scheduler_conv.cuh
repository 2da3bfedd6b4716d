// Which tile of a convolution a block computes when: blocks stay and take one piece of work after
// the other. Comes after sm90/split_k.cuh and a kernel's head, which has kTileM, kTileN,
// kCluster, kPhases (of the results: backward with strides), kInterleavesPhases, and args.phases[],
// .tile_count, .tiles_n, .group_m, .k_blocks. Tiles are split where there is one phase.
#include "lib/divide.cuh"

__device__ inline int block_of_cluster() { return kCluster == 1 ? 0 : (int)blockIdx.x % kCluster; }

// Words of a phase in args.phases[]. Extents are those of its pixels, of which results are the
// first ones of an axis; lower is where in the image the window of its pixel 0 begins; its pixel i
// of an axis is pixel first + i * args.spread of the result.
enum PhaseWord {
  kFirstWork,  // number of its first piece of work
  kTilesM,     // of a cluster's blocks together
  kPixels,     // of all images
  kMap,        // of the pixels
  kFirstTap, kTaps, kMagicTaps,
  kExtentW, kExtentH, kExtentD,
  kMagicW, kMagicH, kMagicD,
  kLowerW, kLowerH, kLowerD,
  kFirstW, kFirstH, kFirstD,
  kResultW, kResultH, kResultD,
  kPlanes,  // that its taps are in, each with equally many
  kPhaseWords
};

static const bool kHasEmptyWork = kPhases > 1;  // pixels that no tap reaches
static const int kTmaWarpRegisters = kPhases > 1 ? 56 : 40;  // of a thread that only asks for tiles

struct WorkTile {
  int m, n;          // first row and column
  int group, phase;
  int first, count;  // blocks of depth
};

__device__ inline int64 phase_word(const Args& args, int phase, int word) {
  return args.phases[kPhases == 1 ? word : phase * kPhaseWords + word];
}

// Pieces of work of one cluster of blocks; its blocks take neighbouring tiles of rows.
__device__ inline int work_count(const Args& args) {
  return count_work(args, (int)args.tile_count);
}
__device__ inline int first_work() { return (int)blockIdx.x / kCluster; }
__device__ inline int work_step() { return (int)gridDim.x / kCluster; }

// Phases take turns where they have equally many tiles (kInterleavesPhases): pixels between pixels are
// written at about the same time, and a block has all of them in turn. Else one comes after the
// other. In each the groups of channels one after the other; of these, tiles in bands of group_m
// rows of tiles, column by column: the band's rows and the columns stay in the L2 cache while they
// are used.
__device__ inline WorkTile work_of(const Args& args, int piece) {
  WorkTile work;
  int number = tile_of_work(args, piece);
  work.phase = 0;
  if constexpr (kInterleavesPhases) {
    const int round = number / kPhases;
    // With 4 phases a block has the next one each time, but after its 4th tile goes on one further:
    // warpgroups that take turns have all of them, too.
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
