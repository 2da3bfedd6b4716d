// Global average pooling, backward.

// The gradient of an average: the same number for a whole image. kCount <= kPixels, so that a
// packet has elements of two images at most.
template <int kCount>
__device__ inline void spread_images(const Args& args) {
  const Index begin = ((Index)blockIdx.x * kThreads + threadIdx.x) * kCount;
  if (begin >= (Index)args.elements) return;
  const Index image[1] = {begin / kPixels};
  const int left = kPixels - (int)(begin - image[0] * kPixels);  // pixels of this image
  const Index next[1] = {min(image[0] + 1, (Index)args.images - 1)};
  R dy[1], after[1];
  dy_of<1>(args, image, dy);
  if constexpr (kCount > 1) dy_of<1>(args, next, after);
  const R value = quotient<kPixels>(dy[0]);
  const R other = kCount > 1 ? quotient<kPixels>(after[0]) : value;
  R values[kCount];
#pragma unroll
  for (int v = 0; v < kCount; ++v) values[v] = v < left ? value : other;
  const Index at[1] = {begin};
  epilogue<kCount>(args, at, values);
}

extern "C" __global__ void __launch_bounds__(kThreads)
    pooling_global(const __grid_constant__ Args args) {
  spread_images<kVector>(args);
}
extern "C" __global__ void __launch_bounds__(kThreads)
    pooling_global_elements(const __grid_constant__ Args args) {
  spread_images<1>(args);
}
