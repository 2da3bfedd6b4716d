// Global pooling, forward, NHWC: a warp reduces 32 channel packets of an image over its pixels,
// which are divided over kShares warps where images are few.
#include "lib/divide.cuh"
#include "lib/elements.cuh"
#include "lib/pointwise.cuh"
#include "lib/ptx_maximum.cuh"
#include "lib/rows.cuh"

static const int kLanes = 32, kGroups = kThreads / kLanes / kShares;  // of channels, per CTA
static const int kOwn = (kPixels + kShares - 1) / kShares;            // pixels of a warp
static const int kAhead = kOwn < kMaxAhead ? kOwn : kMaxAhead, kMaxUnrolled = 64;

__device__ inline R pooled(R a, R b) { return kMaximum ? max_or_nan(a, b) : a + b; }

// Reduces pixels share, share + kShares, ... of an image, with kAhead loads in flight.
template <int kCount>
__device__ inline void pool_pixels(const Args& args, Index image, Index channel, int share,
                                   R (&sums)[kCount]) {
  R x[kAhead][kCount];
  // Indices past the end are clamped to the last pixel, and their values skipped.
  const auto load = [&](int number, int slot) {
    const Index at[3] = {image, min(share + number * kShares, kPixels - 1), channel};
    x_of<kCount>(args, at, x[slot]);
  };
#pragma unroll
  for (int i = 0; i < kAhead; ++i) load(i, i);
#pragma unroll(kOwn <= kMaxUnrolled ? (kOwn + kAhead - 1) / kAhead : 1)
  for (int first = 0; first < kOwn; first += kAhead) {
#pragma unroll
    for (int i = 0; i < kAhead; ++i) {
      const int number = first + i;
      if (share + number * kShares < kPixels) {
#pragma unroll
        for (int v = 0; v < kCount; ++v) sums[v] = pooled(sums[v], x[i][v]);
      }
      if (number + kAhead < kOwn) load(number + kAhead, i);
    }
  }
}

template <int kCount>
__device__ inline void pool_columns(const Args& args, int64 groups, int64 magic_groups) {
  const int lane = threadIdx.x % kLanes, warp = threadIdx.x / kLanes;
  const int share = warp % kShares;
  const Index group = (Index)blockIdx.x * kGroups + warp / kShares;
  const Index image = divide(group, magic_groups, groups);
  const Index channel = (group - image * (Index)groups) * (kLanes * kCount) + lane * kCount;
  const bool works = image < (Index)args.images && channel < (Index)args.channels;
  R sums[kCount];
  fill(kMaximum ? -(R)infinity() : (R)0, sums);
  if (works) pool_pixels(args, image, channel, share, sums);
  if constexpr (kShares > 1) {
    __shared__ R parts[kThreads / kLanes][kCount][kLanes];
#pragma unroll
    for (int v = 0; v < kCount; ++v) parts[warp][v][lane] = sums[v];
    __syncthreads();
    if (share != 0) return;
#pragma unroll
    for (int other = 1; other < kShares; ++other)
#pragma unroll
      for (int v = 0; v < kCount; ++v) sums[v] = pooled(sums[v], parts[warp + other][v][lane]);
  }
  if (!works) return;
#pragma unroll
  for (int v = 0; v < kCount; ++v)
    if (!kMaximum) sums[v] = quotient<kPixels>(sums[v]);
  const Index at[3] = {image, 0, channel};
  epilogue<kCount>(args, at, sums);
}

extern "C" __global__ void __launch_bounds__(kThreads, kBlocks)
    pooling_global(const __grid_constant__ Args args) {
  pool_columns<kVector>(args, args.groups, args.magic_groups);
}
extern "C" __global__ void __launch_bounds__(kThreads)
    pooling_global_elements(const __grid_constant__ Args args) {
  pool_columns<1>(args, args.narrow_groups, args.magic_narrow_groups);
}
