// Global pooling, forward.

// kRows images per block go through shared memory; then a thread per image.
template <int kCount>
__device__ inline void pool_images(const Args& args) {
  R* shared = (R*)shared_memory();
  const Index first = (Index)blockIdx.x * kRows;
  const int images = (int)min((Index)kRows, (Index)args.images - first);
  const Index begin = first * kPixels;
#pragma unroll 4
  for (int i = threadIdx.x * kCount; i < images * kPixels; i += kThreads * kCount) {
    const Index at[1] = {begin + i};
    R x[kCount];
    x_of<kCount>(args, at, x);
#pragma unroll
    for (int v = 0; v < kCount; ++v) shared[i + v] = x[v];
  }
  __syncthreads();
  for (int image = threadIdx.x; image < images; image += kThreads) {
    const R* pixels = shared + image * kPixels;
    R values[1] = {kMaximum ? -(R)infinity() : (R)0};
    // Threads read different banks where an image has an odd number of pixels; otherwise each
    // begins at a place of its own.
    int place = kPixels % 2 == 1 ? 0 : image % kPixels;
#pragma unroll(kPixels % 2 == 1 && kPixels < 100 ? kPixels : 4)
    for (int n = 0; n < kPixels; ++n) {
      values[0] = kMaximum ? max_or_nan(values[0], pixels[place]) : values[0] + pixels[place];
      ++place;
      if (kPixels % 2 == 0 && place == kPixels) place = 0;
    }
    if (!kMaximum) values[0] = quotient<kPixels>(values[0]);
    const Index at[1] = {first + image};
    epilogue<1>(args, at, values);
  }
}

extern "C" __global__ void __launch_bounds__(kThreads)
    pooling_global(const __grid_constant__ Args args) {
  pool_images<kVector>(args);
}
extern "C" __global__ void __launch_bounds__(kThreads)
    pooling_global_elements(const __grid_constant__ Args args) {
  pool_images<1>(args);
}
