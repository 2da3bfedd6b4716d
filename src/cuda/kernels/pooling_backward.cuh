// Pooling, backward: every element of dx gathers from the windows that contain it.

static const bool kMaximum = kMode == 2;
// An upper bound on the windows that contain any of `count` consecutive elements.
__device__ constexpr int windows_of(int count, int window, int stride) {
  return (count - 1 + window - 1) / stride + 1;
}
static const int kCoverD = windows_of(1, kWindowD, kStrideD);
static const int kCoverW = windows_of(kTileW, kWindowW, kStrideW);

// Windows of a tile that starts at a multiple of the stride have compile-time offsets from it;
// window j is first_window + j.
__device__ constexpr int floor_div(int a, int b) { return a >= 0 ? a / b : -((b - 1 - a) / b); }
static const bool kAlignedD = kStrideD == 1;
static const int kAheadD = floor_div(kPaddingD - kWindowD + kStrideD, kStrideD);
static const int kAheadH = floor_div(kPaddingH - kWindowH + kStrideH, kStrideH);
static const int kAheadW = floor_div(kPaddingW - kWindowW + kStrideW, kStrideW);
// kSegments: the windows that start in a tile's row are loaded as one packet. kOwnExist: all of
// them exist.
static const int kOwn = kSegments ? kTileW / kStrideW : 1;
__device__ constexpr bool is_own(int j) { return j + kAheadW >= 0 && j + kAheadW < kOwn; }

__device__ inline int first_window(int i, int stride, int padding, int window) {
  return max(i + padding - window + stride, 0) / stride;
}

// Gradient and argmax position of one window, for kCount channels.
template <int kCount> struct Returned {
  R dy[kCount];
  int winner[kCount];
};
template <int kCount>
__device__ inline void load_windows(const Args& args, const Index (&at)[5],
                                    Returned<kCount>& returned) {
  dy_of<kCount>(args, at, returned.dy);
  if constexpr (kMaximum) winner_of<kCount>(args, at, returned.winner);
}

// Loads a row of windows. Indices are clamped; the caller masks windows that do not exist.
__device__ inline void load_row_of_windows(const Args& args, const Tile& tile, int d, int h,
                                           int first, Returned<1> (&row)[kCoverW]) {
  Index at[5];
  Returned<kOwn> own;
  const int begin = first - kAheadW, extent = (int)args.y_w;
  tile.locate(d, h, min(begin, extent - kOwn), at);
  load_windows(args, at, own);
#pragma unroll
  for (int j = 0; j < kCoverW; ++j) {
    if (is_own(j)) {
      row[j].dy[0] = own.dy[j + kAheadW];
      if (kMaximum) row[j].winner[0] = own.winner[j + kAheadW];
    } else {
      tile.locate(d, h, clamped(first + j, extent), at);
      load_windows(args, at, row[j]);
    }
  }
}

// kCount channels per element, or (kWhole) rows of a whole tile as vectors.
template <int kCount, bool kWhole, int kHeight = kTileH, int kWidth = kTileW>
__device__ inline void gather(const Args& args, const Tile& tile) {
  constexpr int kRows = windows_of(kHeight, kWindowH, kStrideH);
  constexpr int kSpan = windows_of(kWidth, kWindowW, kStrideW);
  constexpr bool kAlignedRows = kHeight % kStrideH == 0, kAlignedSpan = kWidth % kStrideW == 0;
  R sums[kHeight][kWidth][kCount];
#pragma unroll
  for (int p = 0; p < kHeight; ++p)
#pragma unroll
    for (int q = 0; q < kWidth; ++q) fill((R)0, sums[p][q]);
  const int first_d = kAlignedD ? tile.d + kAheadD
                                : first_window(tile.d, kStrideD, kPaddingD, kWindowD);
  const int first_h = kAlignedRows ? tile.h / kStrideH + kAheadH
                                : first_window(tile.h, kStrideH, kPaddingH, kWindowH);
  const int first_w = kAlignedSpan ? tile.w / kStrideW + kAheadW
                                : first_window(tile.w, kStrideW, kPaddingW, kWindowW);

#pragma unroll(kUnrollRows)
  for (int row = 0; row < kCoverD * kRows; ++row) {
    const int jd = row / kRows, jh = row % kRows, od = first_d + jd, oh = first_h + jh;
    const int kd = kPaddingD + (kAlignedD ? -(kAheadD + jd) : tile.d - od * kStrideD);
    const bool row_counts = is_within(od, (int)args.y_d) && is_within(oh, (int)args.y_h) &&
                            is_within(kd, kWindowD);
    const int from_d = clamped(od, (int)args.y_d), from_h = clamped(oh, (int)args.y_h);
    Returned<1> together[kWhole && kSegments ? kSpan : 1];
    if constexpr (kWhole && kSegments)
      load_row_of_windows(args, tile, from_d, from_h, first_w, together);
#pragma unroll(kUnrollSpan)
    for (int j = 0; j < kSpan; ++j) {
      const int ow = first_w + j;
      const bool exists = kWhole && kSegments && kOwnExist && is_own(j);
      const bool counts = row_counts && (exists || is_within(ow, (int)args.y_w));
      Returned<kCount> returned;
      if constexpr (kWhole && kSegments) {
        returned = together[j];
      } else {
        Index at[5];
        tile.locate(from_d, from_h, clamped(ow, (int)args.y_w), at);
        load_windows(args, at, returned);
      }
      if constexpr (kMode == 1) {
        // At least 1, so that windows which do not exist divide by no zero.
        const R count = (R)max(covered(args, od, oh, ow), 1), inverse = reciprocal(count);
#pragma unroll
        for (int v = 0; v < kCount; ++v)
          returned.dy[v] = quotient(returned.dy[v], count, inverse);
      }
#pragma unroll
      for (int p = 0; p < kHeight; ++p) {
        const int kh = p + kPaddingH +
                       (kAlignedRows ? -(kAheadH + jh) * kStrideH : tile.h - oh * kStrideH);
#pragma unroll
        for (int q = 0; q < kWidth; ++q) {
          const int kw = q + kPaddingW +
                         (kAlignedSpan ? -(kAheadW + j) * kStrideW : tile.w - ow * kStrideW);
          const bool inside = is_within(kh, kWindowH) && is_within(kw, kWindowW);
          const int position = (kd * kWindowH + kh) * kWindowW + kw;
#pragma unroll
          for (int v = 0; v < kCount; ++v)
            if (counts && inside && (!kMaximum || returned.winner[v] == position))
              sums[p][q][v] += returned.dy[v];
        }
      }
    }
  }

#pragma unroll
  for (int p = 0; p < kHeight; ++p) {
    if (tile.h + p >= (int)args.to_h) break;
    if constexpr (kMode == 0) {
#pragma unroll
      for (int q = 0; q < kWidth; ++q)
#pragma unroll
        for (int v = 0; v < kCount; ++v)
          sums[p][q][v] = quotient<kWindowD * kWindowH * kWindowW>(sums[p][q][v]);
    }
    Index at[5];
    if constexpr (kWhole && kVectorStores) {
      tile.locate(tile.d, tile.h + p, tile.w, at);
      R values[kWidth];
#pragma unroll
      for (int q = 0; q < kWidth; ++q) values[q] = sums[p][q][0];
      epilogue<kWidth>(args, at, values);
      continue;
    }
#pragma unroll
    for (int q = 0; q < kWidth; ++q) {
      if (tile.w + q >= (int)args.to_w) break;
      tile.locate(tile.d, tile.h + p, tile.w + q, at);
      epilogue<kCount>(args, at, sums[p][q]);
    }
  }
}

// The elements of a partial tile, one by one.
__device__ inline void gather_one_by_one(const Args& args, const Tile& tile) {
  Tile one = tile;
#pragma unroll 1
  for (one.h = tile.h; one.h < min(tile.h + kTileH, (int)args.to_h); ++one.h)
#pragma unroll 1
    for (one.w = tile.w; one.w < min(tile.w + kTileW, (int)args.to_w); ++one.w)
      gather<1, false, 1, 1>(args, one);
}

extern "C" __global__ void __launch_bounds__(kThreads)
    pooling_backward(const __grid_constant__ Args args) {
  constexpr int kCount = kColumns ? kVector : 1;
  const Tile tile = Tile::of_thread<kCount>(args);
  if (!tile.exists) return;
  if constexpr (!kSegments && !kVectorStores)
    gather<kCount, false>(args, tile);
  else if (tile.w + kTileW <= (int)args.to_w)
    gather<1, true>(args, tile);
  else
    gather_one_by_one(args, tile);
}
extern "C" __global__ void __launch_bounds__(kThreads)
    pooling_backward_elements(const __grid_constant__ Args args) {
  const Tile tile = Tile::of_thread<1>(args);
  if (tile.exists) gather<1, false>(args, tile);
}
