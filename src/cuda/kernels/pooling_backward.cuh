// Pooling, backward: every element of dx gathers from the windows that saw it. Those of a tile are
// kCoverD x kCoverH x kCoverW at most.

static const bool kMaximum = kMode == 2;
static const int kCoverD = (kWindowD - 1) / kStrideD + 1;
static const int kCoverH = (kTileH - 1 + kWindowH - 1) / kStrideH + 1;
static const int kCoverW = (kTileW - 1 + kWindowW - 1) / kStrideW + 1;

// Windows of a tile that begins at a multiple of the stride stand at distances from it that are
// known to the compiler; window j is first_window + j.
__device__ constexpr int floor_div(int a, int b) { return a >= 0 ? a / b : -((b - 1 - a) / b); }
static const bool kAlignedH = kTileH % kStrideH == 0, kAlignedW = kTileW % kStrideW == 0;
static const int kAheadH = floor_div(kPaddingH - kWindowH + kStrideH, kStrideH);
static const int kAheadW = floor_div(kPaddingW - kWindowW + kStrideW, kStrideW);

__device__ inline int first_window(int i, int stride, int padding, int window) {
  return max(i + padding - window + stride, 0) / stride;
}

template <int kCount, bool kWhole>
__device__ inline void gather(const Args& args) {
  const Tile tile = Tile::of_thread<kCount>(args);
  if (!tile.exists) return;
  R sums[kTileH][kTileW][kCount];      // of windows that are whole, or of maxima
  R partial[kTileH][kTileW][kCount];   // quotients of windows that reach outside of x
#pragma unroll
  for (int p = 0; p < kTileH; ++p)
#pragma unroll
    for (int q = 0; q < kTileW; ++q) {
      fill((R)0, sums[p][q]);
      fill((R)0, partial[p][q]);
    }
  const int first_d = first_window(tile.d, kStrideD, kPaddingD, kWindowD);
  const int first_h = kAlignedH ? tile.h / kStrideH + kAheadH
                                : first_window(tile.h, kStrideH, kPaddingH, kWindowH);
  const int first_w = kAlignedW ? tile.w / kStrideW + kAheadW
                                : first_window(tile.w, kStrideW, kPaddingW, kWindowW);
  const int whole_count = kWindowD * kWindowH * kWindowW;

#pragma unroll(kUnrollRows)
  for (int row = 0; row < kCoverD * kCoverH; ++row) {
    const int jh = row % kCoverH, od = first_d + row / kCoverH, oh = first_h + jh;
    const int kd = tile.d + kPaddingD - od * kStrideD;
    const bool row_counts = od < (int)args.y_d && is_within(oh, (int)args.y_h) &&
                            is_within(kd, kWindowD);
#pragma unroll(kUnrollSpan)
    for (int j = 0; j < kCoverW; ++j) {
      const int ow = first_w + j;
      if (!row_counts || !is_within(ow, (int)args.y_w)) continue;
      Index at[5];
      tile.locate(od, oh, ow, at);
      R dy[kCount];
      int winner[kCount];
      dy_of<kCount>(args, at, dy);
      if constexpr (kMaximum) winner_of<kCount>(args, at, winner);
      const int count = kMode == 1 ? covered(args, od, oh, ow) : whole_count;
      if (count != whole_count) {
        const R reciprocal = (R)1 / (R)count;
#pragma unroll
        for (int v = 0; v < kCount; ++v) dy[v] = quotient(dy[v], (R)count, reciprocal);
      }
#pragma unroll
      for (int p = 0; p < kTileH; ++p) {
        const int kh = p + kPaddingH +
                       (kAlignedH ? -(kAheadH + jh) * kStrideH : tile.h - oh * kStrideH);
#pragma unroll
        for (int q = 0; q < kTileW; ++q) {
          const int kw = q + kPaddingW +
                         (kAlignedW ? -(kAheadW + j) * kStrideW : tile.w - ow * kStrideW);
          const bool inside = is_within(kh, kWindowH) && is_within(kw, kWindowW);
          const int position = (kd * kWindowH + kh) * kWindowW + kw;
#pragma unroll
          for (int v = 0; v < kCount; ++v) {
            const bool seen = inside && (!kMaximum || winner[v] == position);
            if (count == whole_count)
              sums[p][q][v] += seen ? dy[v] : (R)0;
            else
              partial[p][q][v] += seen ? dy[v] : (R)0;
          }
        }
      }
    }
  }

#pragma unroll
  for (int p = 0; p < kTileH; ++p) {
    if (tile.h + p >= (int)args.to_h) break;
    if constexpr (!kMaximum) {
#pragma unroll
      for (int q = 0; q < kTileW; ++q)
#pragma unroll
        for (int v = 0; v < kCount; ++v)
          sums[p][q][v] = quotient<kWindowD * kWindowH * kWindowW>(sums[p][q][v]) +
                          (kMode == 1 ? partial[p][q][v] : (R)0);
    }
    Index at[5];
    if (kWhole && kTogether && tile.w + kTileW <= (int)args.to_w) {
      tile.locate(tile.d, tile.h + p, tile.w, at);
      R values[kTileW];
#pragma unroll
      for (int q = 0; q < kTileW; ++q) values[q] = sums[p][q][0];
      epilogue<kTileW>(args, at, values);
    } else {
#pragma unroll
      for (int q = 0; q < kTileW; ++q) {
        if (tile.w + q >= (int)args.to_w) break;
        tile.locate(tile.d, tile.h + p, tile.w + q, at);
        epilogue<kCount>(args, at, sums[p][q]);
      }
    }
  }
}

extern "C" __global__ void __launch_bounds__(kThreads)
    pooling_backward(const __grid_constant__ Args args) {
  gather<kColumns ? kVector : 1, !kColumns>(args);
}
extern "C" __global__ void __launch_bounds__(kThreads)
    pooling_backward_elements(const __grid_constant__ Args args) {
  gather<1, false>(args);
}
