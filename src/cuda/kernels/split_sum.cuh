// Parts of sums, f32 by part and element: added in order and finished by the epilogue program. A
// thread has kCount neighbouring sums, and kShares threads share their parts.
#include "lib/divide.cuh"
#include "lib/elements.cuh"
#include "lib/pointwise.cuh"
#include "lib/ptx_launch.cuh"
#include "lib/rows.cuh"

template <int kCount>
struct alignas(kCount * 4) Parts {
  float values[kCount];
};

template <int kCount>
__device__ inline void add_parts(const Args& args, int64 sums, int64 columns) {
  __shared__ Parts<kCount> shares[kThreads];
  const int kAcross = kThreads / kShares;
  const int share = threadIdx.x / kAcross, lane = threadIdx.x % kAcross;
  const int64 number = (int64)blockIdx.x * kAcross + lane;
  wait_for_launch_before();
  Parts<kCount> sum;
#pragma unroll
  for (int i = 0; i < kCount; ++i) sum.values[i] = 0;
  if (number < sums) {
    const Parts<kCount>* part = (const Parts<kCount>*)args.partial + number;
#pragma unroll 8
    for (int p = share; p < (int)args.parts; p += kShares) {
      const Parts<kCount> more = part[p * sums];
#pragma unroll
      for (int i = 0; i < kCount; ++i) sum.values[i] += more.values[i];
    }
  }
  if constexpr (kShares > 1) {
    shares[threadIdx.x] = sum;
    __syncthreads();
    if (share > 0) return;
#pragma unroll
    for (int other = 1; other < kShares; ++other)
#pragma unroll
      for (int i = 0; i < kCount; ++i)
        sum.values[i] += shares[other * kAcross + lane].values[i];
  }
  if (number >= sums) return;
  const Index row = (Index)(number / columns);
  Index at[kRank];
  locate_row(args, row, at);
  at[kRank - 1] = (Index)(number - (int64)row * columns) * kCount;
  R acc[kCount];
#pragma unroll
  for (int i = 0; i < kCount; ++i) acc[i] = (R)sum.values[i];
  epilogue<kCount>(args, at, acc);
}

extern "C" __global__ void __launch_bounds__(kThreads)
    split_sum(const __grid_constant__ Args args) {
  add_parts<kVector>(args, args.sums, args.columns);
}
// For pointers that are not aligned.
extern "C" __global__ void __launch_bounds__(kThreads)
    split_sum_elements(const __grid_constant__ Args args) {
  add_parts<1>(args, args.sums * kVector, args.columns * kVector);
}
