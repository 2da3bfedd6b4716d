// Depthwise convolution, backward-filter: dw[c, tap] = sum over pixels of dy * x. A CTA sums kPart
// rows of taps over a part of the pixels, with all those taps in registers of each thread. The
// second launch reduces the partials of the CTAs in a fixed order.

// Reduces over the CTA, row of threads by row (NHWC) or over all threads of the channel (NCHW), and
// stores the partials.
__device__ inline void store_partial(const Args& args, const ThreadWork& work, int tap_row,
                                    R (&sums)[kPart][kWindowW][kVector]) {
  R* shared = (R*)shared_memory();
  const int row_channels = kAcross * kVector, taps = kPart * kWindowW;
  if constexpr (kColumns) {
    const int rows = kThreads / kAcross;
    for (int row = 0; row < rows; ++row) {
      if (work.row == row) {
#pragma unroll
        for (int k = 0; k < kPart * kWindowW; ++k)
#pragma unroll
          for (int v = 0; v < kVector; ++v) {
            R* slot = shared + k * row_channels + work.lane * kVector + v;
            const R sum = sums[k / kWindowW][k % kWindowW][v];
            *slot = row == 0 ? sum : *slot + sum;
          }
      }
      __syncthreads();
    }
  } else {
    const int warp = threadIdx.x / kLanes, lane = threadIdx.x % kLanes;
#pragma unroll
    for (int k = 0; k < kPart * kWindowW; ++k) {
      const R sum = warp_reduce<Sum>(sums[k / kWindowW][k % kWindowW][0]);
      if (lane == 0) shared[warp * taps + k] = sum;
    }
    __syncthreads();
    for (int k = threadIdx.x; k < taps; k += kThreads)
      for (int other = 1; other < kThreads / kLanes; ++other)
        shared[k] += shared[other * taps + k];
    __syncthreads();
  }
  // Partials are stored as [CTA][tap][channel].
  for (int i = threadIdx.x; i < taps * row_channels; i += kThreads) {
    const int k = i / row_channels, tap = tap_row * kWindowW + k;
    const int channel = (int)blockIdx.y * row_channels + (i - k * row_channels);
    // The last part may extend past the last row of taps of its plane.
    const bool exists = tap_row % kWindowH + k / kWindowW < kWindowH;
    if (exists && channel < (int)args.channels)
      ((R*)args.partial)[((Index)blockIdx.x * (kWindowD * kWindowH * kWindowW) + tap) *
                             (Index)args.channels +
                         channel] = shared[i];
  }
}

// Fallback for unaligned pointers: a tap of a channel per thread, over the tiles of its piece.
extern "C" __global__ void __launch_bounds__(kThreads)
    depthwise_filter_elements(const __grid_constant__ Args args) {
  const Index number = (Index)blockIdx.y * kThreads + threadIdx.x;
  const Index count = (Index)args.channels * (kWindowD * kWindowH * kWindowW);
  if (number >= count) return;
  const int channel = (int)(number % args.channels);
  const int tap = (int)(number / args.channels);
  const int kd = tap / (kWindowH * kWindowW), kh = tap / kWindowW % kWindowH, kw = tap % kWindowW;
  R sum = 0;
  for (int i = blockIdx.x; i < (int)args.tiles; i += gridDim.x) {
    const Tile tile(args, i);
    const int z = tile.d * kStrideD + kd * kDilationD - kPaddingD;
    for (int p = 0; p < kTileH * kTileW; ++p) {
      const int h = tile.h + p / kTileW, w = tile.w + p % kTileW;
      const int y = h * kStrideH + kh * kDilationH - kPaddingH;
      const int x = w * kStrideW + kw * kDilationW - kPaddingW;
      if (h >= (int)args.to_h || w >= (int)args.to_w || !is_within(z, (int)args.from_d) ||
          !is_within(y, (int)args.from_h) || !is_within(x, (int)args.from_w))
        continue;
      R one[1], other[1];
      Index at[5];
      locate(tile.n, channel, z, y, x, at);
      x_of<1>(args, at, one);
      locate(tile.n, channel, tile.d, h, w, at);
      dy_of<1>(args, at, other);
      sum += one[0] * other[0];
    }
  }
  ((R*)args.partial)[(Index)blockIdx.x * count + number] = sum;
}

// Reduces kLanes (tap, channel) pairs per CTA; rows of threads divide the pieces.
extern "C" __global__ void __launch_bounds__(kFinishThreads)
    depthwise_finish(const __grid_constant__ Args args) {
  __shared__ R slots[kFinishThreads];
  const int row = threadIdx.x / kLanes, rows = kFinishThreads / kLanes;
  const Index count = (Index)args.channels * (kWindowD * kWindowH * kWindowW);
  const Index number = (Index)blockIdx.x * kLanes + threadIdx.x % kLanes;
  R sum = 0;
  if (number < count) {
#pragma unroll 4
    for (Index piece = row; piece < (Index)args.pieces; piece += rows)
      sum += ((const R*)args.partial)[piece * count + number];
  }
  slots[threadIdx.x] = sum;
  __syncthreads();
  if (row != 0 || number >= count) return;
  for (int other = 1; other < rows; ++other) sum += slots[other * kLanes + threadIdx.x];
  const int tap = (int)(number / args.channels);
  store_weight(args, number - tap * args.channels, stored_tap(tap), sum);
}
