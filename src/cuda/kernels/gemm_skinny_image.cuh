// Products with few rows by warpgroups: x of a stage where a launch before has made its image
// (gemm_skinny_order_launch.cuh, gemm_skinny_digits_launch.cuh). Nobody of the block has to put it
// in order.
#pragma once

#include "lib/ptx_tma.cuh"

// By a warp: x of a chunk, which counts for `full`.
template <class SomeArgs>  // which have the image
__device__ inline void ask_for_image(const SomeArgs& args, int chunk, uint8* to, Mbarrier* full,
                                     Mbarrier*) {
  load_bytes(to, (const uint8*)args.image + (int64)chunk * kImageBytes, kImageBytes, full);
}
struct NoOrder {};
__device__ inline void put_in_order(const NoOrder&, int, uint8*) {}  // it is, when it comes
typedef NoOrder StageLane;
