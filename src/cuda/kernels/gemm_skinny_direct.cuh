// y[few][many] = x[few][depth] * weights[many][depth] as gemm_skinny_tma.cuh has it, where weights
// go straight to registers: nothing but sums needs shared memory, and nothing comes before the
// first loads. For small matrices.
//
// A block has kRows rows of weights and the whole depth, whose steps its warps take in turn. A warp
// has two batches of kBatch steps in registers: one on its way, one that is multiplied. x comes
// through the L1 cache, which weights pass by: gemm_skinny_lane.cuh.

struct Batch {
  Words packets[kBatch][kPackets];
  typename S::Word scales[kBatch][kPackets];

  // From step `first` of the warp on, as far as there are steps.
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
