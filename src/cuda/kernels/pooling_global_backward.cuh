// Global average pooling, backward, NCHW.

// Broadcasts the gradient of an average to all pixels of its image. kCount <= kPixels, so that a
// packet spans at most two images. A thread writes kPackets packets.
template <int kCount>
__device__ inline void spread_images(const Args& args) {
  const Index first = ((Index)blockIdx.x * kPackets * kThreads + threadIdx.x) * kCount;
  const Index last = (Index)args.images - 1;
  R dy[kPackets][2];
  int left[kPackets];  // pixels of the first image
#pragma unroll
  for (int i = 0; i < kPackets; ++i) {
    const Index begin = first + i * (kThreads * kCount), image = begin / kPixels;
    left[i] = kPixels - (int)(begin - image * kPixels);
#pragma unroll
    for (int k = 0; k < 2; ++k) {
      const Index at[1] = {min(image + k, last)};
      R loaded[1];
      dy_of<1>(args, at, loaded);
      dy[i][k] = quotient<kPixels>(loaded[0]);
    }
  }
#pragma unroll
  for (int i = 0; i < kPackets; ++i) {
    const Index at[1] = {first + i * (kThreads * kCount)};
    if (at[0] >= (Index)args.elements) return;
    const R here = dy[i][0], after = dy[i][1];
    R values[kCount];
#pragma unroll
    for (int v = 0; v < kCount; ++v) values[v] = v < left[i] ? here : after;
    epilogue<kCount>(args, at, values);
  }
}

extern "C" __global__ void __launch_bounds__(kThreads, kBlocks)
    pooling_global(const __grid_constant__ Args args) {
  spread_images<kVector>(args);
}
extern "C" __global__ void __launch_bounds__(kThreads)
    pooling_global_elements(const __grid_constant__ Args args) {
  spread_images<1>(args);
}
