// Global average pooling, backward.

// The gradient of an average: the same number for a whole image.
template <int kCount>
__device__ inline void spread_images(const Args& args) {
  const Index begin = ((Index)blockIdx.x * kThreads + threadIdx.x) * kCount;
  if (begin >= (Index)args.elements) return;
  Index image[1] = {begin / kPixels};
  int left = kPixels - (int)(begin - image[0] * kPixels);  // pixels of this image from here on
  R values[kCount], dy[1];
  dy_of<1>(args, image, dy);
  R value = quotient<kPixels>(dy[0]);
#pragma unroll
  for (int v = 0; v < kCount; ++v) {
    if (left == 0) {
      ++image[0];
      left = kPixels;
      dy_of<1>(args, image, dy);
      value = quotient<kPixels>(dy[0]);
    }
    values[v] = value;
    --left;
  }
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
