// Depthwise convolution, forward and backward-data. Along an axis, result q of a tile and tap k meet
// the source at a distance from where the tile begins that is known to the compiler:
//   forward:        q * stride + k * dilation - padding, from tile * stride on
//   backward-data: (q + padding - k * dilation) / stride where that is whole, from tile / stride on
// (tiles of backward-data begin at multiples of the stride). The source lies within
// [kFirst, kFirst + kSpan).

static const int kNowhere = -1 << 20;
// The tap k for which that is `at`, or kNowhere.
__device__ constexpr int tap_at(int q, int at, int stride, int dilation, int padding, int window) {
  const int t = kBackward ? q + padding - at * stride : at + padding - q * stride;
  return t < 0 || t % dilation != 0 || t / dilation >= window ? kNowhere : t / dilation;
}
__device__ constexpr int distance(int q, int k, int stride, int dilation, int padding) {
  if (!kBackward) return q * stride + k * dilation - padding;
  const int t = q + padding - k * dilation;
  return t % stride != 0 ? kNowhere : t / stride;
}

extern "C" __global__ void __launch_bounds__(kThreads, kBlocks)
    depthwise_pixels(const __grid_constant__ Args args) {
  const int kTaps = kWindowD * kWindowH * kWindowW;
  R* weights = (R*)shared_memory();  // by tap, lane and channel of the packet
  const Place place = Place::of_thread(args);
  const int row_channels = kAcross * kVector;
  for (int i = threadIdx.x; i < kTaps * row_channels; i += kThreads) {
    const int tap = i / row_channels;
    const int channel = (int)blockIdx.y * row_channels + (i - tap * row_channels);
    weights[i] = channel < (int)args.channels ? weight_of(args, channel, stored_tap(tap)) : (R)0;
  }
  __syncthreads();
  if (!place.works) return;
  const R* own = weights + place.lane * kVector;

  for (int number = place.first; number < (int)args.tiles; number += place.step) {
    const Tile tile(args, number);
    R sums[kTileH][kTileW][kVector];
#pragma unroll
    for (int p = 0; p < kTileH; ++p)
#pragma unroll
      for (int q = 0; q < kTileW; ++q) fill((R)0, sums[p][q]);
    const int first_h = kBackward ? tile.h / kStrideH : tile.h * kStrideH;
    const int first_w = (kBackward ? tile.w / kStrideW : tile.w * kStrideW) + kFirstW;

    for (int kd = 0; kd < kWindowD; ++kd) {
      int z = tile.d * kStrideD + kd * kDilationD - kPaddingD;
      if (kBackward) {
        z = tile.d + kPaddingD - kd * kDilationD;
        if (z % kStrideD != 0) continue;
        z /= kStrideD;
      }
      if (!is_within(z, (int)args.from_d)) continue;
      const R* plane = own + kd * kWindowH * kWindowW * row_channels;
      // Row r of the source, one ahead of what is multiplied.
      R lines[2][kSpanW][kVector];
      const auto load = [&](int r) {
        load_line(args.from_h, args.from_w, tile.n, place.channel, z, first_h + kFirstH + r,
                  first_w, lines[r % 2], [&](const Index (&at)[5], R (&packet)[kVector]) {
                    source_of<kVector>(args, at, packet);
                  });
      };
      load(0);
#pragma unroll
      for (int r = 0; r < kSpanH; ++r) {
        if (r + 1 < kSpanH) load(r + 1);
#pragma unroll
        for (int p = 0; p < kTileH; ++p) {
          const int kh = tap_at(p, kFirstH + r, kStrideH, kDilationH, kPaddingH, kWindowH);
          if (kh < 0) continue;
#pragma unroll
          for (int kw = 0; kw < kWindowW; ++kw) {
            R weight[kVector];
#pragma unroll
            for (int v = 0; v < kVector; ++v)
              weight[v] = plane[(kh * kWindowW + kw) * row_channels + v];
#pragma unroll
            for (int q = 0; q < kTileW; ++q) {
              const int at = distance(q, kw, kStrideW, kDilationW, kPaddingW) - kFirstW;
              if (at < 0) continue;
#pragma unroll
              for (int v = 0; v < kVector; ++v)
                sums[p][q][v] += lines[r % 2][at < kSpanW ? at : 0][v] * weight[v];
            }
          }
        }
      }
    }

    Index at[5];
#pragma unroll
    for (int p = 0; p < kTileH; ++p) {
      if (tile.h + p >= (int)args.to_h) break;
      if (kTogether && kVector == 1 && tile.w + kTileW <= (int)args.to_w) {
        locate(tile.n, place.channel, tile.d, tile.h + p, tile.w, at);
        R row[kTileW];
#pragma unroll
        for (int q = 0; q < kTileW; ++q) row[q] = sums[p][q][0];
        keep<kTileW>(args, at, row);
      } else {
#pragma unroll
        for (int q = 0; q < kTileW; ++q) {
          if (tile.w + q >= (int)args.to_w) break;
          locate(tile.n, place.channel, tile.d, tile.h + p, tile.w + q, at);
          keep<kVector>(args, at, sums[p][q]);
        }
      }
    }
  }
}

// For pointers that are not aligned: a result per thread.
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
  // Where the source meets tap k, if it does.
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
