// The end of tiles whose depth the kSplits blocks of a cluster share: every block lays its sums
// down in its own shared memory, and takes a part of the columns, for which it adds the sums of all
// blocks in their order and runs the epilogue. Nothing goes through memory, and no order is left to
// chance. Comes after a kernel's head, lib/product_rows.cuh, a schedule and a loader.
//
// Parts are the last work of a block: the stages of its ring are free then, and hold the sums of a
// warp's 16 rows as [column / 8][lane][4], the way matrix units leave them.
#include "lib/ptx_barrier.cuh"
#include "lib/ptx_cluster.cuh"

static const int kMeeting = 14;  // number of the barrier
static const int kOwnColumns = kTileN / kSplits;
// Columns whose sums a warp adds up at a time.
static const int kJoined = kOwnColumns < kSlabColumns ? kOwnColumns : kSlabColumns;

struct alignas(16) SumQuad {
  Sum values[4];
};

// Where a warp has 16 of its tile's rows, by their number / 16.
__device__ inline SumQuad* laid_sums(uint8* memory, int rows) {
  return (SumQuad*)memory + rows * (kTileN / 8 * 32) + threadIdx.x % 32;
}

// All threads of a block with a part come here; `memory` is read no more by anybody.
// They come from different places of the program: a barrier that counts them.
__device__ inline void meet_before_sums() { group_barrier<kThreads>(kMeeting); }
// All threads of the cluster: the sums of all blocks have been laid down. What else they have done
// with shared memory is done, too; before a block leaves, they meet once more.
__device__ inline void meet_after_sums() { cluster_barrier(); }

// By threads that have no sums.
__device__ inline void watch_others_join(const Args& args) {
  if (!has_part(args)) return;
  meet_before_sums();
  meet_after_sums();
}

// By a warpgroup with 16 of each 64 rows from `first` * 16 on for each warp. Its sums are those of
// kTileN columns for each of kRowBlocks.
template <int kCount, int kHalf>
__device__ inline void join_parts(const Args& args, const Work& work, uint8* memory, uint8* slab,
                                  Sum (&sums)[kCount][kHalf], int first) {
  meet_before_sums();
#pragma unroll
  for (int piece = 0; piece < kCount; ++piece) {
    const int kOfRows = kTileN / 2 / kHalf;  // pieces of 16 rows
    SumQuad* to =
        laid_sums(memory, first + 4 * (piece / kOfRows)) + piece % kOfRows * (kHalf / 4 * 32);
#pragma unroll
    for (int j = 0; j < kHalf / 4; ++j) {
      const Sum* four = sums[piece] + 4 * j;
      to[j * 32] = {four[0], four[1], four[2], four[3]};
    }
  }
  meet_after_sums();
  const int own = (int)blockIdx.x % kSplits * kOwnColumns;
  Work some = work;
#pragma unroll 1
  for (int number = 0; number < kRowBlocks * (kOwnColumns / kJoined); ++number) {
    const int rows = first + number / (kOwnColumns / kJoined) * 4;
    const int column = own + number % (kOwnColumns / kJoined) * kJoined;
    const SumQuad* from = laid_sums(memory, rows) + column / 8 * 32;
    Sum total[kJoined / 2];
#pragma unroll
    for (int block = 0; block < kSplits; ++block)
#pragma unroll
      for (int j = 0; j < kJoined / 8; ++j) {
        const SumQuad four = load_from_block(from + j * 32, block);
#pragma unroll
        for (int i = 0; i < 4; ++i)
          total[4 * j + i] = block == 0 ? four.values[i] : total[4 * j + i] + four.values[i];
      }
    some.n = work.n + column;
    NoTails none;
    finish_tile_rows(args, some, slab, total, work.m + rows * 16, none);
  }
}
