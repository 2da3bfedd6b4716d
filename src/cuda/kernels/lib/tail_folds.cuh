// How numbers are folded by reductions behind a product, and a walk over these. A head has kTails
// and for each of them a Tail<number> with typedef Op, one of the folds.
#pragma once

// `identity` leaves the other operand as it is. Minimum and maximum hand on NaN.
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

// Which axes of a product's result a reduction folds.
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
