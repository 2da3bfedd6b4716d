// TMA loads of operand tiles of (batched) matrices with one contiguous axis each. Requires the
// generated header and a tile scheduler with first_k(args, block), the first K index of a K-block.
// The axes of args.map_a and args.map_b are (contiguous, other, batch); args.batched_a,
// args.batched_b are 0 where all batches share one matrix. An operand that producer warps compute
// (kComputesA, kComputesB) has no map.
#include "lib/ptx_tma.cuh"

static const int kStageBytesA = kTileM * kBlockK * kElementBytes;
static const int kStageBytesB = kTileN * kBlockK * kElementBytes;
static const int kBoxRows = 128 / kElementBytes;  // of a box with contiguous rows

// kRows rows from `row` on, to this CTA or (kShared) multicast to all CTAs of the cluster.
template <bool kTranspose, int kRows, bool kShared>
__device__ inline void load_rows(uint8* to, const TensorMap& map, Mbarrier* barrier, int row,
                                 int depth, int batch) {
  const auto load = [&](uint8* box, const int(&at)[3]) {
    if constexpr (kShared)
      load_box_multicast(box, map, barrier, at, (uint16)((1 << kCluster) - 1));
    else
      load_box(box, map, barrier, at);
  };
  if constexpr (kTranspose) {
#pragma unroll
    for (int r = 0; r < kRows; r += kBoxRows)
      load(to + r / kBoxRows * kBlockK * 128, {row + r, depth, batch});
  } else {
    load(to, {depth, row, batch});
  }
}

// The CTAs of a cluster have different rows of A and the same columns of B: each loads 1 / kCluster
// of B and multicasts it.
template <class A>
__device__ inline void load_stage(const A& args, const WorkTile& work, int block, uint8* a,
                                  uint8* b, Mbarrier* barrier) {
  const int depth = first_k(args, block), kPart = kTileN / kCluster;
  if constexpr (!kComputesA)
    load_rows<kTransposeA, kTileM, false>(a, args.map_a, barrier, work.m, depth,
                                          work.batch * (int)args.batched_a);
  const int part = block_of_cluster() * kPart;
  if constexpr (!kComputesB)
    load_rows<kTransposeB, kPart, (kCluster > 1)>(b + part * kBlockK * kElementBytes, args.map_b,
                                                  barrier, work.n + part, depth,
                                                  work.batch * (int)args.batched_b);
}
