// Reductions over the lanes of a warp and the warps of a CTA. Every thread gets the result.
// Deterministic: the order of operations is fixed.
#pragma once

static const int kLanes = 32;
static const unsigned kAllLanes = 0xffffffffu;

// Minimum and maximum propagate NaN.
struct Sum {
  template <class R> __device__ static R identity() { return (R)0; }
  template <class R> __device__ static R apply(R a, R b) { return a + b; }
};
struct Product {
  template <class R> __device__ static R identity() { return (R)1; }
  template <class R> __device__ static R apply(R a, R b) { return a * b; }
};
struct Max {
  template <class R> __device__ static R identity() { return -(R)__int_as_float(0x7f800000); }
  template <class R> __device__ static R apply(R a, R b) { return b != b || b > a ? b : a; }
};
struct Min {
  template <class R> __device__ static R identity() { return (R)__int_as_float(0x7f800000); }
  template <class R> __device__ static R apply(R a, R b) { return b != b || b < a ? b : a; }
};

// Over groups of kWidth adjacent lanes, a power of two. All lanes of the warp call it.
template <class Op, int kWidth = kLanes, class R>
__device__ inline R warp_reduce(R v) {
#pragma unroll
  for (int distance = kWidth / 2; distance > 0; distance /= 2)
    v = Op::apply(v, __shfl_xor_sync(kAllLanes, v, distance));
  return v;
}
// kCount values at once: their shuffles overlap.
template <class Op, int kWidth = kLanes, int kCount, class R>
__device__ inline void warp_reduce(R (&v)[kCount]) {
#pragma unroll
  for (int distance = kWidth / 2; distance > 0; distance /= 2) {
    R other[kCount];
#pragma unroll
    for (int i = 0; i < kCount; ++i) other[i] = __shfl_xor_sync(kAllLanes, v[i], distance);
#pragma unroll
    for (int i = 0; i < kCount; ++i) v[i] = Op::apply(v[i], other[i]);
  }
}

// The smallest power of two that is not less.
__device__ constexpr int lanes_for(int values) {
  int lanes = 1;
  while (lanes < values) lanes *= 2;
  return lanes;
}

// Over the CTA, all of whose threads call it: two barriers.
template <int kWarps, class Op, class R>
__device__ inline R block_reduce(R v) {
  v = warp_reduce<Op>(v);
  if constexpr (kWarps > 1) {
    __shared__ R slots[kWarps];
    const int lane = threadIdx.x % kLanes, warp = threadIdx.x / kLanes;
    if (lane == 0) slots[warp] = v;
    __syncthreads();
    // Every warp reduces the warps' results by itself.
    constexpr int kWidth = lanes_for(kWarps);
    v = lane % kWidth < kWarps ? slots[lane % kWidth] : Op::template identity<R>();
    v = warp_reduce<Op, kWidth>(v);
    __syncthreads();
  }
  return v;
}
