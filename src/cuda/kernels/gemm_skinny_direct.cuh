// Skinny GEMM that loads weights straight into registers, for small matrices: shared memory holds
// only the reduction, and the first loads issue at once, without barrier or pipeline setup.
//
// A CTA computes kRows rows over the whole K, whose steps are interleaved over its warps. A warp
// double-buffers batches of kBatch steps in registers: one in flight, one being multiplied. Loads
// of x are cached in L1; loads of weights bypass it (gemm_skinny_lane.cuh).

struct Batch {
  Words packets[kBatch][kPackets];
  typename S::Word scales[kBatch][kPackets];

  // Loads steps `first` to first + kBatch - 1 of the warp, where they exist.
  __device__ void load(const Args& args, const Lane& lane, int first) {
    if (first + kBatch <= lane.steps) {
#pragma unroll
      for (int s = 0; s < kBatch; ++s) load_step(args, lane, first + s, packets[s], scales[s]);
    } else {
#pragma unroll
      for (int s = 0; s < kBatch; ++s)
        if (first + s < lane.steps) load_step(args, lane, first + s, packets[s], scales[s]);
    }
  }
  __device__ void multiply(const Args& args, const Coord& coord, const Lane& lane, int first,
                           Accumulators& accumulators) const {
    if (first + kBatch <= lane.steps) {
#pragma unroll
      for (int s = 0; s < kBatch; ++s)
        multiply_step(args, coord, lane, first + s, packets[s], scales[s], accumulators);
    } else {
#pragma unroll
      for (int s = 0; s < kBatch; ++s)
        if (first + s < lane.steps)
          multiply_step(args, coord, lane, first + s, packets[s], scales[s], accumulators);
    }
  }
};

extern "C" __global__ void __launch_bounds__(kThreads, kBlocks)
    gemm_skinny_direct(const __grid_constant__ Args args) {
  Coord coord;
  int group = blockIdx.x;
  if constexpr (kRank > 2) {
    int batch = group / (int)args.groups;
    group %= (int)args.groups;
#pragma unroll
    for (int axis = kRank - 3; axis >= 0; --axis) {
      coord.batch[axis] = (Index)(batch % (int)args.batch_extent[axis]);
      batch /= (int)args.batch_extent[axis];
    }
  }
  coord.first_row = (Index)group * kRows;
  const Lane lane(args, coord);
  Batch here, next;
  here.load(args, lane, 0);
  next.load(args, lane, kBatch);
  Accumulators accumulators;
#pragma unroll 1
  for (int step = 0; step < lane.steps; step += 2 * kBatch) {
    here.multiply(args, coord, lane, step, accumulators);
    here.load(args, lane, step + 2 * kBatch);
    next.multiply(args, coord, lane, step + kBatch, accumulators);
    next.load(args, lane, step + 3 * kBatch);
  }
  finish_unit<1, true>(args, coord, accumulators, (float*)shared_memory(), 0);
}
