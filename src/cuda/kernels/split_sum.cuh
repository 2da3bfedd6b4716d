// Adds the parts of sums in their order and runs the epilogue: every thread takes kVector neighbours.
#include "lib/divide.cuh"
#include "lib/elements.cuh"
#include "lib/pointwise.cuh"
#include "lib/rows.cuh"

// Run `run` of kCount elements: the last axis is cut into `per_row` runs.
template <int kCount>
__device__ inline void finish_run(const Args& args, Index run) {
  const Index per_row = kCount == 1 ? (Index)(&args.extent0)[kRank - 1] : (Index)args.per_row;
  const int64 magic_row = kCount == 1 ? (&args.magic0)[kRank - 1] : args.magic_row;
  const Index row = kRank == 1 ? 0 : divide(run, magic_row, per_row);
  Index at[kRank];
  locate_row(args, row, at);
  at[kRank - 1] = (run - row * per_row) * kCount;

  typedef Vector<kCount, Partial::Word> Numbers;
  const auto* from = (const typename Numbers::Piece*)args.partial + (int64)run * Numbers::kPieces;
  const int64 step = args.elements / kCount * Numbers::kPieces;
  Partial::Word sum[kCount] = {};
  // The loads of some parts are on their way together; the order of the additions stays.
  const int kAtOnce = 8;
  int part = 0;
  for (; part + kAtOnce <= (int)args.parts; part += kAtOnce) {
    Numbers numbers[kAtOnce];
#pragma unroll
    for (int p = 0; p < kAtOnce; ++p)
#pragma unroll
      for (int i = 0; i < Numbers::kPieces; ++i)
        numbers[p].pieces[i] = load_once(from + (part + p) * step + i);
#pragma unroll
    for (int p = 0; p < kAtOnce; ++p)
#pragma unroll
      for (int l = 0; l < kCount; ++l) sum[l] += numbers[p].words[l];
  }
  for (; part < (int)args.parts; ++part) {
    Numbers numbers;
#pragma unroll
    for (int i = 0; i < Numbers::kPieces; ++i) numbers.pieces[i] = load_once(from + part * step + i);
#pragma unroll
    for (int l = 0; l < kCount; ++l) sum[l] += numbers.words[l];
  }
  R acc[kCount];
#pragma unroll
  for (int l = 0; l < kCount; ++l) acc[l] = (R)sum[l];
  epilogue<kCount>(args, at, acc);
}

extern "C" __global__ void __launch_bounds__(kThreads)
    split_sum(const __grid_constant__ Args args) {
  const Index run = (Index)blockIdx.x * kThreads + threadIdx.x;
  if (run < (Index)args.runs) finish_run<kVector>(args, run);
}
// The same for pointers that are not aligned.
extern "C" __global__ void __launch_bounds__(kThreads)
    split_sum_elements(const __grid_constant__ Args args) {
  const Index run = (Index)blockIdx.x * kThreads + threadIdx.x;
  if (run < (Index)args.elements) finish_run<1>(args, run);
}
