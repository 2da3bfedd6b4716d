// Folds of the tail reductions fused behind a GEMM, and a loop over the tails. The generated header
// defines kTails and for each a Tail<number> with typedef Op, one of the folds.
#pragma once

// Minimum and maximum propagate NaN.
struct FoldAdd {
  __device__ static float identity() { return 0; }
  __device__ static float apply(float a, float b) { return a + b; }
};
struct FoldMax {
  __device__ static float identity() { return -__int_as_float(0x7f800000); }
  __device__ static float apply(float a, float b) { return b != b || b > a ? b : a; }
};
struct FoldMin {
  __device__ static float identity() { return __int_as_float(0x7f800000); }
  __device__ static float apply(float a, float b) { return b != b || b < a ? b : a; }
};

// Which axes of the GEMM's result a tail reduces.
enum TailOver { kOverRows, kOverColumns, kOverAll };
template <int kNumber>
struct Tail;

// visit(Tail<0>()), visit(Tail<1>()), ... up to kCount of them.
template <int kCount, int kNumber = 0, class Visit>
__device__ inline void for_each_tail(Visit visit) {
  if constexpr (kNumber < kCount) {
    visit(Tail<kNumber>());
    for_each_tail<kCount, kNumber + 1>(visit);
  }
}
