// Products with few rows by warpgroups: x of a stage where a launch before has made its image
// (gemm_skinny_repack_prepass.cuh, gemm_skinny_limbs_prepass.cuh). Nobody of the block has to put it
// in order.
#pragma once

#include "lib/ptx_tma.cuh"

// By a warp: x of a chunk, which counts for `full`.
template <class SomeArgs>  // which have the image
__device__ inline void load_packed_x(const SomeArgs& args, int chunk, uint8* to, Mbarrier* full,
                                     Mbarrier*) {
  load_bytes(to, (const uint8*)args.packed_x + (int64)chunk * kPackedXBytes, kPackedXBytes, full);
}
struct NoRepack {};
__device__ inline void repack(const NoRepack&, int, uint8*) {}  // it is, when it comes
typedef NoRepack StageLane;
