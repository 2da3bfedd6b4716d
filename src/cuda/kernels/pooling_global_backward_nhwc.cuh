// Global average pooling, backward, NHWC: every thread loads the gradient of kCount channels of an
// image once and writes kRun of its pixels.
#include "lib/divide.cuh"
#include "lib/elements.cuh"
#include "lib/pointwise.cuh"
#include "lib/rows.cuh"

template <int kCount>
__device__ inline void spread_channels(const Args& args, int64 packets, int64 magic_packets) {
  const Index thread = (Index)blockIdx.x * kThreads + threadIdx.x;
  const Index outer = divide(thread, magic_packets, packets);
  const Index image = divide(outer, args.magic_runs, args.runs);
  if (image >= (Index)args.images) return;
  const Index channel = (thread - outer * (Index)packets) * kCount;
  const int first = (int)(outer - image * (Index)args.runs) * kRun;
  const Index from[3] = {image, 0, channel};
  R dy[kCount];
  dy_of<kCount>(args, from, dy);
#pragma unroll
  for (int v = 0; v < kCount; ++v) dy[v] = quotient<kPixels>(dy[v]);
#pragma unroll
  for (int pixel = first; pixel < first + kRun; ++pixel) {
    if (pixel >= kPixels) break;
    const Index at[3] = {image, pixel, channel};
    R values[kCount];
    copy(dy, values);
    epilogue<kCount>(args, at, values);
  }
}

extern "C" __global__ void __launch_bounds__(kThreads)
    pooling_global(const __grid_constant__ Args args) {
  spread_channels<kVector>(args, args.packets, args.magic_packets);
}
extern "C" __global__ void __launch_bounds__(kThreads)
    pooling_global_elements(const __grid_constant__ Args args) {
  spread_channels<1>(args, args.channels, args.magic_channels);
}
