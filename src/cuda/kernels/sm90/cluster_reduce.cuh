// The end of tiles whose depth the kSplits blocks of a cluster share: every block lays its sums
// down in its own shared memory, and takes a part of the columns, for which it adds the sums of all
// blocks in their order and runs the epilogue. Nothing goes through memory, and no order is left to
// chance. Comes after a kernel's head, lib/epilogue_rows.cuh, a schedule and a loader.
//
// Parts are the last work of a block: the stages of its ring are free then, and hold the sums of a
// warp's 16 rows as [column / 8][lane][4], the way matrix units leave them.
#include "lib/ptx_cluster.cuh"

static const int kOwnColumns = kTileN / kSplits;
// Columns whose sums a warp adds up at a time.
static const int kReducedColumns = kOwnColumns < kStagingColumns ? kOwnColumns : kStagingColumns;

static_assert(kSplits == 1 || kTileM * kTileN * (int)sizeof(Accum) <=
                                  kStages * (kStageBytesA + kStageBytesB),
              "the sums of a tile lie where the stages were");

struct alignas(16) AccumQuad {
  Accum values[4];
};

// Where a warp has 16 of its tile's rows, by their number / 16.
__device__ inline AccumQuad* spilled_accumulators(uint8* memory, int rows) {
  return (AccumQuad*)memory + rows * (kTileN / 8 * 32) + threadIdx.x % 32;
}

// By a warpgroup with 16 of each 64 rows from `first` * 16 on for each warp. Its sums are those of
// kTileN columns for each of kRowBlocks. Nobody reads or writes `memory` any more.
template <int kCount, int kHalf>
__device__ inline void spill_accumulators(uint8* memory, const Accum (&accum)[kCount][kHalf], int first) {
#pragma unroll
  for (int piece = 0; piece < kCount; ++piece) {
    const int kOfRows = kTileN / 2 / kHalf;  // pieces of 16 rows
    AccumQuad* to =
        spilled_accumulators(memory, first + 4 * (piece / kOfRows)) + piece % kOfRows * (kHalf / 4 * 32);
#pragma unroll
    for (int j = 0; j < kHalf / 4; ++j) {
      const Accum* four = accum[piece] + 4 * j;
      to[j * 32] = {four[0], four[1], four[2], four[3]};
    }
  }
}

// By the warpgroups that have laid down sums, between two barriers of the cluster: before the first
// all blocks have laid down theirs, and none leaves before the second.
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
    Accum total[kReducedColumns / 2];
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
