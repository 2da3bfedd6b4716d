// Skinny GEMM on warpgroups: loads x that a pre-pass launch has repacked
// (gemm_skinny_repack_prepass.cuh, gemm_skinny_limbs_prepass.cuh), so that the CTA has no repack
// warps.
#pragma once

#include "lib/ptx_tma.cuh"

// By a whole warp: issues the bulk load of x of a chunk; it completes on `full`.
template <class SomeArgs>  // with the member packed_x
__device__ inline void load_packed_x(const SomeArgs& args, int chunk, uint8* to, Mbarrier* full,
                                     Mbarrier*) {
  load_bytes(to, (const uint8*)args.packed_x + (int64)chunk * kPackedXBytes, kPackedXBytes, full);
}
struct NoRepack {};
__device__ inline void repack(const NoRepack&, int, uint8*) {}  // x arrives repacked
typedef NoRepack StageLane;
