// The end of a product with few rows: sums of warps, then of the blocks of a cluster, become
// results.
#pragma once

#include "lib/ptx_cluster.cuh"

static const int kThreads = kWarpsN * kWarpsK * 32;
static const int kPitch = kRows + 4;  // of sums in shared memory: lanes then hit different banks

// The sums of kCount numbers each, `every` floats apart from the next, in their order: kVector
// sums, whose first numbers lie side by side at `first`.
template <int kCount, int kVector>
__device__ inline void add_partials(const float* first, int every, R (&values)[kVector]) {
  struct alignas(4 * kVector) Floats {
    float at[kVector];
  };
  fill((R)0, values);
#pragma unroll
  for (int s = 0; s < kCount; ++s) {
    const Floats summands = *(const Floats*)(first + s * every);
#pragma unroll
    for (int l = 0; l < kVector; ++l) values[l] += summands.at[l];
  }
}
// kVector sums of row m of those of x that are there, row `row` of the weights on, of all warps
// with these rows.
template <int kVector>
__device__ inline void reduce_warps(const float* acc, int m, int row, R (&values)[kVector]) {
  add_partials<kWarpsK>(acc + m * kPitch + row, kRowsPerPass * kPitch, values);
}
// The same of the blocks of a cluster, in their order: each has kVector of them at `sums`.
template <int kSplit, int kVector>
__device__ inline void reduce_cluster(const float* acc, R (&values)[kVector]) {
  float parts[kSplit][kVector];
#pragma unroll
  for (int r = 0; r < kSplit; ++r)
#pragma unroll
    for (int l = 0; l < kVector; ++l) parts[r][l] = load_dsmem(acc + l, r);
  fill((R)0, values);
#pragma unroll
  for (int r = 0; r < kSplit; ++r)
#pragma unroll
    for (int l = 0; l < kVector; ++l) values[l] += parts[r][l];
}
template <int kVector>
__device__ inline void store_results(const Args& args, const Coord& coord, int m, Index row,
                                     R (&values)[kVector]) {
  Index at[kRank];
#pragma unroll
  for (int axis = 0; axis < kRank - 2; ++axis) at[axis] = coord.batch[axis];
  at[kRank - 2] = m;
  at[kRank - 1] = row;
  if (row >= (Index)args.n) return;
  scale_results<kVector>(args, at, values);
  epilogue<kVector>(args, at, values);
}

// kRowsPerPass rows of x from `first` on, whose sums of warps are in `sums`: these are added, then
// those of the kSplit blocks of a cluster, and handed on.
template <int kSplit, int kVector>
__device__ inline void reduce_and_store(const Args& args, const Coord& coord, int first, float* acc,
                                     int rank) {
  constexpr int kShare = kRows / kSplit, kAcross = kShare / kVector;
  if constexpr (kSplit > 1) {
    if constexpr (kWarpsK > 1) {
#pragma unroll 1
      for (int i = threadIdx.x; i < kRows * kRowsPerPass; i += kThreads) {
        R sum[1];
        reduce_warps(acc, i / kRows, i % kRows, sum);
        acc[i / kRows * kPitch + i % kRows] = sum[0];
      }
    }
    cluster_sync();
  }
#pragma unroll 1
  for (int i = threadIdx.x; i < kAcross * kRowsPerPass; i += kThreads) {
    const int m = i / kAcross, row = i % kAcross * kVector + rank * kShare;
    R values[kVector];
    if constexpr (kSplit == 1)
      reduce_warps(acc, m, row, values);
    else
      reduce_cluster<kSplit>(acc + m * kPitch + row, values);
    if (kM % kRowsPerPass == 0 || first + m < kM)
      store_results(args, coord, first + m, coord.first_row + row, values);
  }
}

// Adds the sums of kRowsPerPass rows of x, from `first` on, and hands them on.
template <int kSplit, bool kAligned>
__device__ inline void finish_rows(const Args& args, const Coord& coord, Accumulators& accumulators,
                                   int first, float* acc, int rank) {
  const int warp_n = threadIdx.x / 32 % kWarpsN, warp_k = threadIdx.x / 32 / kWarpsN;
  accumulators.visit([&](int row, int m, float sum) {
    if (kRowsPerPass == kM || (unsigned)(m - first) < (unsigned)kRowsPerPass)
      acc[(warp_k * kRowsPerPass + m - first) * kPitch + warp_n * kWarpRows + row] = sum;
  });
  __syncthreads();
  reduce_and_store<kSplit, kAligned ? kVectorY : 1>(args, coord, first, acc, rank);
  // Nobody writes the next sums, or leaves, while others read these.
  if constexpr (kSplit > 1)
    cluster_sync_relaxed();
  else
    __syncthreads();
}
template <int kSplit, bool kAligned>
__device__ inline void finish_unit(const Args& args, const Coord& coord, Accumulators& accumulators,
                                   float* acc, int rank) {
  accumulators.finish();
#pragma unroll 1
  for (int first = 0; first < kM; first += kRowsPerPass)
    finish_rows<kSplit, kAligned>(args, coord, accumulators, first, acc, rank);
}
