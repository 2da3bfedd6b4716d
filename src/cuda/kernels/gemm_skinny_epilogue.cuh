// Epilogue of the skinny GEMM: reduces accumulators over warps, then over the CTAs of a cluster,
// and stores results.
#pragma once

#include "lib/ptx_cluster.cuh"

static const int kThreads = kWarpsN * kWarpsK * 32;
static const int kPitch = kRows + 4;  // of accumulators in shared memory, free of bank conflicts

// kVector contiguous sums of kCount partials each, added in a fixed order; the partials of a sum
// are `every` floats apart.
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
// Reduces kVector accumulators, from (m, row) on, over the kWarpsK warps that share rows; m counts
// from the first row of x of this pass.
template <int kVector>
__device__ inline void reduce_warps(const float* acc, int m, int row, R (&values)[kVector]) {
  add_partials<kWarpsK>(acc + m * kPitch + row, kRowsPerPass * kPitch, values);
}
// Reduces kVector accumulators over the CTAs of the cluster through DSMEM, in rank order.
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

// Reduces kRowsPerPass rows of x from `first` on over warps and over the kSplit CTAs of the
// cluster, and stores them. Each CTA stores its share of the rows of weights.
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

// One pass of the epilogue: spills the accumulators of kRowsPerPass rows of x, from `first` on, to
// shared memory, reduces and stores them.
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
  // No thread overwrites this buffer, and no CTA exits, while others still read it.
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
