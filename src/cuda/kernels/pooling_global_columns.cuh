// Global pooling, forward, with the channels of a pixel lying together: 32 packets of channels of
// an image per block, whose warps share its pixels.
#include "lib/divide.cuh"
#include "lib/elements.cuh"
#include "lib/pointwise.cuh"
#include "lib/ptx_maximum.cuh"
#include "lib/rows.cuh"

static const int kLanes = 32, kWarps = kThreads / kLanes;
static const int kChunk = (kPixels + kWarps - 1) / kWarps < 8 ? (kPixels + kWarps - 1) / kWarps : 8;

__device__ inline R pooled(R a, R b) { return kMaximum ? max_or_nan(a, b) : a + b; }

template <int kCount>
__device__ inline void pool_columns(const Args& args, int64 groups, int64 magic_groups) {
  __shared__ R parts[kWarps][kLanes * kCount];
  const int lane = threadIdx.x % kLanes, warp = threadIdx.x / kLanes;
  const Index image = divide((Index)blockIdx.x, magic_groups, groups);
  const Index first = ((Index)blockIdx.x - image * (Index)groups) * (kLanes * kCount);
  const Index channel = first + lane * kCount;
  R sums[kCount];
  fill(kMaximum ? -(R)infinity() : (R)0, sums);
  if (channel < (Index)args.channels) {
    // Several pixels on their way at once; those past the last are read as the last.
    for (int begin = warp; begin < kPixels; begin += kChunk * kWarps) {
      R x[kChunk][kCount];
#pragma unroll
      for (int i = 0; i < kChunk; ++i) {
        const Index at[3] = {image, min(begin + i * kWarps, kPixels - 1), channel};
        x_of<kCount>(args, at, x[i]);
      }
#pragma unroll
      for (int i = 0; i < kChunk; ++i) {
        if (begin + i * kWarps >= kPixels) continue;
#pragma unroll
        for (int v = 0; v < kCount; ++v) sums[v] = pooled(sums[v], x[i][v]);
      }
    }
  }
#pragma unroll
  for (int v = 0; v < kCount; ++v) parts[warp][lane * kCount + v] = sums[v];
  __syncthreads();
  const int own = (int)threadIdx.x;
  if (own >= kLanes * kCount || first + own >= (Index)args.channels) return;
  R values[1] = {parts[0][own]};
#pragma unroll
  for (int w = 1; w < kWarps; ++w) values[0] = pooled(values[0], parts[w][own]);
  if (!kMaximum) values[0] = quotient<kPixels>(values[0]);
  const Index at[3] = {image, 0, first + own};
  epilogue<1>(args, at, values);
}

extern "C" __global__ void __launch_bounds__(kThreads)
    pooling_global(const __grid_constant__ Args args) {
  pool_columns<kVector>(args, args.groups, args.magic_groups);
}
extern "C" __global__ void __launch_bounds__(kThreads)
    pooling_global_elements(const __grid_constant__ Args args) {
  pool_columns<1>(args, args.narrow_groups, args.magic_narrow_groups);
}
