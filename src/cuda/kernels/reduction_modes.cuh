// Reduction modes: the term of an element, the fold of two terms, the result of all. The head
// defines
//   kModes[kFolds]  the mode of each fold; several folds share one pass over x
//   kInteger        averages round as integers do
// and args.terms, the number of terms.
#include "lib/chunks.cuh"
#include "lib/divide.cuh"
#include "lib/pointwise.cuh"
#include "lib/reduce.cuh"

// Values of ReductionMode, then sums of squares.
enum { kAdd, kMul, kMin, kMax, kAmax, kAvg, kNorm1, kNorm2, kMulNoZeros, kSquares };

template <class F>
struct Folding : F {
  __device__ static R identity() { return F::template identity<R>(); }
  __device__ static R term(R x) { return x; }
  __device__ static R result(const Args&, R folded) { return folded; }
};

template <int kMode> struct ModeOf : Folding<Sum> {};
template <> struct ModeOf<kMul> : Folding<Product> {};
template <> struct ModeOf<kMin> : Folding<Min> {};
template <> struct ModeOf<kMax> : Folding<Max> {};
template <> struct ModeOf<kAmax> : Folding<Max> {
  __device__ static R identity() { return 0; }
  __device__ static R term(R x) { return fabs(x); }
};
template <> struct ModeOf<kAvg> : Folding<Sum> {
  __device__ static R result(const Args& args, R folded) {
    return kInteger ? op_div_integer(folded, (R)args.terms) : folded / (R)args.terms;
  }
};
template <> struct ModeOf<kNorm1> : Folding<Sum> {
  __device__ static R term(R x) { return fabs(x); }
};
template <> struct ModeOf<kSquares> : Folding<Sum> {
  __device__ static R term(R x) { return x * x; }
};
template <> struct ModeOf<kNorm2> : ModeOf<kSquares> {
  __device__ static R result(const Args&, R folded) { return sqrt(folded); }
};
template <> struct ModeOf<kMulNoZeros> : Folding<Product> {
  __device__ static R term(R x) { return x == (R)0 ? (R)1 : x; }
};

// The mode of fold kNumber.
template <int kNumber> struct FoldAt : ModeOf<kModes[kNumber]> {};
// Calls visit(FoldAt<0>(), Constant<0>()), ... for all folds.
template <int kNumber = 0, class Visit>
__device__ inline void for_each_fold(const Visit& visit) {
  if constexpr (kNumber < kFolds) {
    visit(FoldAt<kNumber>(), Constant<kNumber>());
    for_each_fold<kNumber + 1>(visit);
  }
}

// Epilogue of kCount neighbouring cells of fold kNumber; printed by the engine into the launch that
// has the final results.
template <int kNumber, int kCount>
__device__ void store(const Args& args, const Index (&at)[kKept], R (&values)[kCount]);

// Coordinates of a cell along the kept axes. With kColumns the last kept axis is innermost in
// memory, behind the reduced axes.
__device__ inline void locate_cell(const Args& args, Index cell, Index (&at)[kKept]) {
  if constexpr (kColumns) {
    const Index outer = divide(cell, args.magic_width, args.width);
    locate_axes<0, kKept - 1>(args, outer, at);
    at[kKept - 1] = cell - outer * (Index)args.width;
  } else {
    locate_axes<0, kKept>(args, cell, at);
  }
}
