// Depthwise convolution, forward and backward-data: code shared by the tile and the row kernels.

// Stages the weights of the CTA's channels as [tap][lane][channel of the packet]. All threads must
// call it: it has a barrier.
static const int kRowChannels = kAcross * kVector;
__device__ inline const R* stage_weights(const Args& args) {
  R* weights = (R*)shared_memory();
  for (int i = threadIdx.x; i < kWindowD * kWindowH * kWindowW * kRowChannels; i += kThreads) {
    const int tap = i / kRowChannels;
    const int channel = (int)blockIdx.y * kRowChannels + (i - tap * kRowChannels);
    weights[i] = channel < (int)args.channels ? weight_of(args, channel, stored_tap(tap)) : (R)0;
  }
  __syncthreads();
  return weights;
}

// Fallback for unaligned pointers: a result per thread.
extern "C" __global__ void __launch_bounds__(kThreads)
    depthwise_pixels_elements(const __grid_constant__ Args args) {
  Index rest = (Index)blockIdx.x * kThreads + threadIdx.x;
  const auto take = [&](int64 extent) {
    const Index above = rest / extent, here = rest - above * extent;
    rest = above;
    return (int)here;
  };
  const int channel = take(args.channels);
  const int w = take(args.to_w), h = take(args.to_h), d = take(args.to_d), n = (int)rest;
  if (n >= (int)args.images) return;
  // The source coordinate that tap k of result i reads; false: none.
  const auto meets = [&](int i, int k, int stride, int dilation, int padding, int64 extent,
                         int& at) {
    at = kBackward ? i + padding - k * dilation : i * stride + k * dilation - padding;
    if (kBackward && (at < 0 || at % stride != 0)) return false;
    if (kBackward) at /= stride;
    return is_within(at, (int)extent);
  };
  R sum[1] = {0};
  Index at[5];
  for (int tap = 0; tap < kWindowD * kWindowH * kWindowW; ++tap) {
    const int kd = tap / (kWindowH * kWindowW), kh = tap / kWindowW % kWindowH, kw = tap % kWindowW;
    int z, y, x;
    if (!meets(d, kd, kStrideD, kDilationD, kPaddingD, args.from_d, z) ||
        !meets(h, kh, kStrideH, kDilationH, kPaddingH, args.from_h, y) ||
        !meets(w, kw, kStrideW, kDilationW, kPaddingW, args.from_w, x))
      continue;
    R source[1];
    locate(n, channel, z, y, x, at);
    source_of<1>(args, at, source);
    sum[0] += source[0] * weight_of(args, channel, stored_tap(tap));
  }
  locate(n, channel, d, h, w, at);
  keep<1>(args, at, sum);
}
