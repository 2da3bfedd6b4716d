// Split-K reduction through the workspace: adds the partials in a fixed order and runs the
// epilogue. Every thread has kVector adjacent elements, and kShares threads share the partials of
// each.
#include "lib/divide.cuh"
#include "lib/elements.cuh"
#include "lib/pointwise.cuh"
#include "lib/ptx_grid_dependency.cuh"
#include "lib/rows.cuh"

static const int kAcross = kThreads / kShares;

// Adds the partials of share `share` of run `run`, kCount elements each.
template <int kCount>
__device__ inline void add_partials(const Args& args, Index run, int share,
                                 Partial::Word (&sum)[kCount]) {
  typedef Vector<kCount, Partial::Word> Numbers;
  const auto* from = (const typename Numbers::Piece*)args.partial + (int64)run * Numbers::kPieces;
  const int64 step = args.elements / kCount * Numbers::kPieces;
  // Several loads are in flight; the order of additions is fixed.
  const int kAtOnce = 8;
  int part = share;
  for (; part + (kAtOnce - 1) * kShares < (int)args.parts; part += kAtOnce * kShares) {
    Numbers numbers[kAtOnce];
#pragma unroll
    for (int p = 0; p < kAtOnce; ++p)
#pragma unroll
      for (int i = 0; i < Numbers::kPieces; ++i)
        numbers[p].pieces[i] = load_once(from + (part + p * kShares) * step + i);
#pragma unroll
    for (int p = 0; p < kAtOnce; ++p)
#pragma unroll
      for (int l = 0; l < kCount; ++l) sum[l] += numbers[p].words[l];
  }
  for (; part < (int)args.parts; part += kShares) {
    Numbers numbers;
#pragma unroll
    for (int i = 0; i < Numbers::kPieces; ++i)
      numbers.pieces[i] = load_once(from + part * step + i);
#pragma unroll
    for (int l = 0; l < kCount; ++l) sum[l] += numbers.words[l];
  }
}

// Epilogue of run `run` of kCount elements: the last axis has `per_row` runs.
template <int kCount>
__device__ inline void finish_run(const Args& args, Index run, const Partial::Word (&sum)[kCount]) {
  const Index per_row = kCount == 1 ? (Index)(&args.extent0)[kRank - 1] : (Index)args.per_row;
  const int64 magic_row = kCount == 1 ? (&args.magic0)[kRank - 1] : args.magic_row;
  const Index row = kRank == 1 ? 0 : divide(run, magic_row, per_row);
  Index at[kRank];
  locate_row(args, row, at);
  at[kRank - 1] = (run - row * per_row) * kCount;
  R acc[kCount];
#pragma unroll
  for (int l = 0; l < kCount; ++l) acc[l] = (R)sum[l];
  epilogue<kCount>(args, at, acc);
}

template <int kCount>
__device__ inline void sum_runs(const Args& args, Index runs) {
  const int share = threadIdx.x / kAcross, lane = threadIdx.x % kAcross;
  const Index run = (Index)blockIdx.x * kAcross + lane;
  Partial::Word sum[kCount] = {};
  wait_on_dependent_grids();
  if (run < runs) add_partials(args, run, share, sum);
  if constexpr (kShares > 1) {
    __shared__ Partial::Word shares[kShares][kCount][kAcross];
#pragma unroll
    for (int l = 0; l < kCount; ++l) shares[share][l][lane] = sum[l];
    __syncthreads();
    if (share > 0) return;
#pragma unroll
    for (int other = 1; other < kShares; ++other)
#pragma unroll
      for (int l = 0; l < kCount; ++l) sum[l] += shares[other][l][lane];
  }
  if (run < runs) finish_run(args, run, sum);
}

extern "C" __global__ void __launch_bounds__(kThreads)
    split_k_reduce(const __grid_constant__ Args args) {
  sum_runs<kVector>(args, (Index)args.runs);
}
// For unaligned pointers.
extern "C" __global__ void __launch_bounds__(kThreads)
    split_k_reduce_elements(const __grid_constant__ Args args) {
  sum_runs<1>(args, (Index)args.elements);
}
