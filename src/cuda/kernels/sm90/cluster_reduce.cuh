// Split-K reduction within a cluster over DSMEM. Every CTA spills its accumulators to its own
// shared memory, then owns kTileN / kSplits columns: it adds the accumulators of all CTAs in rank
// order and runs the epilogue for these columns. No global workspace, and the result is
// deterministic. Requires the generated header, lib/epilogue_rows.cuh, a tile scheduler and a
// loader.
//
// A split tile is the last work item of a CTA, so the pipeline stages are free to hold the
// accumulators: [column / 8][lane][4] per 16 rows of a warp, the fragment layout of wgmma.
#include "lib/ptx_cluster.cuh"

static const int kOwnColumns = kTileN / kSplits;
// Columns that a warp reduces at a time.
static const int kReducedColumns = kOwnColumns < kStagingColumns ? kOwnColumns : kStagingColumns;

static_assert(kSplits == 1 || kTileM * kTileN * (int)sizeof(Mma::Accum) <=
                                  kStages * (kStageBytesA + kStageBytesB),
              "the sums of a tile lie where the stages were");

struct alignas(16) AccumQuad {
  Mma::Accum values[4];
};

// Accumulators of 16 rows of the tile; `rows` is the row index / 16.
__device__ inline AccumQuad* spilled_accumulators(uint8* memory, int rows) {
  return (AccumQuad*)memory + rows * (kTileN / 8 * 32) + threadIdx.x % 32;
}

// By a consumer warpgroup; its warps have 16 of each 64 rows from `first` * 16 on, and kTileN
// columns per row block. No thread or TMA access to `memory` may be outstanding.
template <int kCount, int kHalf>
__device__ inline void spill_accumulators(uint8* memory, const Mma::Accum (&accum)[kCount][kHalf],
                                          int first) {
#pragma unroll
  for (int piece = 0; piece < kCount; ++piece) {
    const int kOfRows = kTileN / 2 / kHalf;  // accumulator fragments per 16 rows
    AccumQuad* to = spilled_accumulators(memory, first + 4 * (piece / kOfRows)) +
                    piece % kOfRows * (kHalf / 4 * 32);
#pragma unroll
    for (int j = 0; j < kHalf / 4; ++j) {
      const Mma::Accum* four = accum[piece] + 4 * j;
      to[j * 32] = {four[0], four[1], four[2], four[3]};
    }
  }
}

// By the consumer warpgroups, between two cluster barriers: before the first every CTA has spilled
// its accumulators, and no CTA exits before the second.
template <class A>
__device__ inline void cluster_reduce(const A& args, uint8* memory, uint8* staging, int first) {
  const WorkTile work = work_of(args, split_work_of_cta(args));
  const int own = (int)blockIdx.x % kSplits * kOwnColumns;
  WorkTile some = work;
#pragma unroll 1
  for (int number = 0; number < kRowBlocks * (kOwnColumns / kReducedColumns); ++number) {
    const int rows = first + number / (kOwnColumns / kReducedColumns) * 4;
    const int column = own + number % (kOwnColumns / kReducedColumns) * kReducedColumns;
    const AccumQuad* from = spilled_accumulators(memory, rows) + column / 8 * 32;
    Mma::Accum total[kReducedColumns / 2];
#pragma unroll
    for (int block = 0; block < kSplits; ++block)
#pragma unroll
      for (int j = 0; j < kReducedColumns / 8; ++j) {
        const AccumQuad four = load_dsmem(from + j * 32, block);
#pragma unroll
        for (int i = 0; i < 4; ++i)
          total[4 * j + i] = block == 0 ? four.values[i] : total[4 * j + i] + four.values[i];
      }
    some.n = work.n + column;
    NoTails none;
    epilogue_tile_rows(args, some, staging, total, work.m + rows * 16, none);
  }
}
