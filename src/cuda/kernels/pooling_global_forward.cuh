// Global pooling, forward, NCHW, of computed inputs.

// Stages kRows images per CTA in shared memory; then a thread reduces each image.
template <int kCount>
__device__ inline void pool_images(const Args& args) {
  R* shared = (R*)shared_memory();
  const Index first = (Index)blockIdx.x * kRows;
  const int images = (int)min((Index)kRows, (Index)args.images - first);
  const Index begin = first * kPixels;
  // Up to 8 packets in flight; indices past the end are clamped to the first element.
  constexpr int kStep = kThreads * kCount;
  constexpr int kSteps = (kRows * kPixels + kStep - 1) / kStep, kChunk = kSteps < 8 ? kSteps : 8;
  for (int from = threadIdx.x * kCount; from < images * kPixels; from += kChunk * kStep) {
    R x[kChunk][kCount];
#pragma unroll
    for (int i = 0; i < kChunk; ++i) {
      const int here = from + i * kStep;
      const Index at[1] = {begin + (here < images * kPixels ? here : 0)};
      x_of<kCount>(args, at, x[i]);
    }
#pragma unroll
    for (int i = 0; i < kChunk; ++i) {
      const int here = from + i * kStep;
      if (here >= images * kPixels) continue;
#pragma unroll
      for (int v = 0; v < kCount; ++v) shared[here + v] = x[i][v];
    }
  }
  __syncthreads();
  for (int image = threadIdx.x; image < images; image += kThreads) {
    const R* pixels = shared + image * kPixels;
    R values[1] = {kMaximum ? -(R)infinity() : (R)0};
    // With an odd number of pixels per image, threads read different banks; otherwise each starts
    // at a different pixel.
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
