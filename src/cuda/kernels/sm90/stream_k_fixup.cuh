// Stream-K fixup: adds the partial accumulators of tiles that several ranges of sm90/stream_k.cuh
// share. The CTA with the first K-blocks of a tile runs its epilogue. The other CTAs have the tile
// at the begin of their ranges: they store partials to a workspace slot of their own and set a
// flag. Partials are added in the order of ranges, so results are deterministic. A warp has the
// same rows of a tile in every CTA, hence one flag per warp and 16 rows. Requires
// sm90/cluster_reduce.cuh; args.parts holds kTileM x kTileN accumulators per CTA, args.flags one
// word per 16 rows.
#include "lib/ptx_grid_dependency.cuh"
#include "lib/ptx_memory.cuh"

static const int kFlags = kTileM / 16;  // per CTA

__device__ inline uint8* partials_of_range(const Args& args, int range) {
  return (uint8*)args.parts +
         (int64)block_of_range(range) * (kTileM * kTileN * (int)sizeof(Mma::Accum));
}
__device__ inline uint32* flag_of_range(const Args& args, int range, int first) {
  return (uint32*)args.flags + block_of_range(range) * kFlags + first;
}

// By a consumer warpgroup; its warps have 16 of each 64 rows from `first` * 16 on. The previous
// launch has reset the flags.
template <int kCount, int kHalf>
__device__ inline void publish_partials(const Args& args, const Mma::Accum (&accum)[kCount][kHalf],
                                        int first) {
  spill_accumulators(partials_of_range(args, own_range()), accum, first);
  __syncwarp();
  if (threadIdx.x % 32 != 0) return;
  wait_on_dependent_grids();
  __threadfence();
  *(volatile uint32*)flag_of_range(args, own_range(), first) = 1;
}

// All lanes of the warp poll together: if lanes could diverge, the compiler would treat the
// pipeline stage as a per-lane value and reload descriptors before every wgmma. No timeout as in
// await_blocks of lib/grid_barrier.cuh: a second exit of the kernel would be shared by all roles,
// with the register count of the smallest.
__device__ inline void await_flag(const uint32* flag) {
  wait_on_dependent_grids();
  while (__any_sync(~0u, *(const volatile uint32*)flag == 0)) __nanosleep(20);
  __threadfence();
}

// Adds the same rows of the following ranges, as far as these hold K-blocks of the last tile of
// this CTA's range.
template <int kCount, int kHalf>
__device__ inline void add_partials(const Args& args, Mma::Accum (&accum)[kCount][kHalf],
                                    int first) {
  const int stages = (int)args.tile_stages, own = own_range();
  const int tile_end = (range_begin(args, own + 1) + stages - 1) / stages * stages;
#pragma unroll 1
  for (int range = own + 1; range_begin(args, range) < tile_end; ++range) {
    await_flag(flag_of_range(args, range, first));
    uint8* part = partials_of_range(args, range);
#pragma unroll
    for (int piece = 0; piece < kCount; ++piece) {
      const int kOfRows = kTileN / 2 / kHalf;  // accumulator fragments per 16 rows
      const AccumQuad* from = spilled_accumulators(part, first + 4 * (piece / kOfRows)) +
                              piece % kOfRows * (kHalf / 4 * 32);
#pragma unroll
      for (int j = 0; j < kHalf / 4; ++j) {
        const uint4 words = StreamPiece<16>::load(from + j * 32);
#pragma unroll
        for (int i = 0; i < 4; ++i) accum[piece][4 * j + i] += ((const Mma::Accum*)&words)[i];
      }
    }
  }
}
