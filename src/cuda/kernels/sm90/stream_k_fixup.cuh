// The sums of tiles that ranges of sm90/stream_k.cuh share. Who has the begin of a tile finishes
// it; the others are at the begin of their ranges then, leave their sums in scratch memory, each
// block in a place of its own, and raise a flag. Sums are added in the order of the ranges, so
// results do not depend on who is first. Warps have the same rows of a tile in every block: a flag
// is one warp's word to another. Comes after sm90/cluster_reduce.cuh; args.parts has kTileM x kTileN
// sums for each block, args.flags a word for each 16 rows of them.
#include "lib/ptx_grid_dependency.cuh"
#include "lib/ptx_memory.cuh"

static const int kFlags = kTileM / 16;  // of a block

__device__ inline uint8* partials_of_range(const Args& args, int range) {
  return (uint8*)args.parts + (int64)block_of_range(range) * (kTileM * kTileN * (int)sizeof(Accum));
}
__device__ inline uint32* flag_of_range(const Args& args, int range, int first) {
  return (uint32*)args.flags + block_of_range(range) * kFlags + first;
}

// By a warpgroup, whose warps have 16 of each 64 rows from `first` * 16 on. The launch before has
// reset the flags.
template <int kCount, int kHalf>
__device__ inline void publish_partials(const Args& args, const Accum (&accum)[kCount][kHalf], int first) {
  spill_accumulators(partials_of_range(args, own_range()), accum, first);
  __syncwarp();
  if (threadIdx.x % 32 != 0) return;
  wait_on_dependent_grids();
  __threadfence();
  *(volatile uint32*)flag_of_range(args, own_range(), first) = 1;
}

// By all lanes of a warp, which leave together: else the compiler takes the stage of the ring for a
// number of each lane's own, and moves descriptors before every product. There is no end to it as
// await_blocks of lib/grid_barrier.cuh has one: a second way out of the kernel is one of all roles,
// with the registers of the smallest.
__device__ inline void await_flag(const uint32* flag) {
  wait_on_dependent_grids();
  while (__any_sync(~0u, *(const volatile uint32*)flag == 0)) __nanosleep(20);
  __threadfence();
}

// The same rows of the ranges behind the block's own, as far as they have stages of the tile that
// its range ends with.
template <int kCount, int kHalf>
__device__ inline void add_partials(const Args& args, Accum (&accum)[kCount][kHalf], int first) {
  const int stages = (int)args.tile_stages, own = own_range();
  const int tile_end = (range_begin(args, own + 1) + stages - 1) / stages * stages;
#pragma unroll 1
  for (int range = own + 1; range_begin(args, range) < tile_end; ++range) {
    await_flag(flag_of_range(args, range, first));
    uint8* part = partials_of_range(args, range);
#pragma unroll
    for (int piece = 0; piece < kCount; ++piece) {
      const int kOfRows = kTileN / 2 / kHalf;  // pieces of 16 rows
      const AccumQuad* from =
          spilled_accumulators(part, first + 4 * (piece / kOfRows)) + piece % kOfRows * (kHalf / 4 * 32);
#pragma unroll
      for (int j = 0; j < kHalf / 4; ++j) {
        const uint4 words = StreamPiece<16>::load(from + j * 32);
#pragma unroll
        for (int i = 0; i < 4; ++i) accum[piece][4 * j + i] += ((const Accum*)&words)[i];
      }
    }
  }
}
