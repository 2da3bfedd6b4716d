// Pooling, forward. Windows are taken row by row: first along w, then rows into windows. Elements
// outside of x are read as the nearest one inside, which the window has anyway.

static const bool kMaximum = kMode == 2;
static const bool kZeros = !kMaximum || kOutside == 0;  // what is outside counts as 0
static const int kSpan = (kTileW - 1) * kStrideW + kWindowW;

// Whether a maximum moved: its bits say so where zeros are all positive and NaNs all alike.
__device__ inline bool differs(float a, float b) {
  return __float_as_uint(a) != __float_as_uint(b);
}
__device__ inline bool differs(double a, double b) {
  return __double_as_longlong(a) != __double_as_longlong(b);
}

// A maximum or a sum, and where in the tile the maximum was first.
template <int kCount> struct Pooled {
  R value[kCount];
  int at[kCount];

  __device__ void clear(int first) {
    fill(kMaximum ? -(R)infinity() : (R)0, value);
    fill(first, at);
  }
  // `is_first`: nothing was taken before.
  __device__ void take(int v, R seen, int position, bool is_first) {
    if (!kMaximum) {
      value[v] = is_first ? seen : value[v] + seen;
      return;
    }
    const R larger = is_first ? seen : max_or_nan(value[v], seen);
    if (kPositions && (is_first || differs(larger, value[v]))) at[v] = position;
    value[v] = larger;
  }
};

// Element i of a tile that begins at `first` where padding does not count: what is outside of x is
// the nearest element inside, at its place.
template <int kPadding> __device__ inline int place(int i, int first, int extent) {
  if (!kMaximum || kOutside != 1) return i;
  return min(i < kPadding ? max(i, -first) : i, extent - 1 - first);
}

// kSegments: the elements of one row of x that a tile's windows see are read by packets, from the
// kAhead-th on; those before and after are read one by one.
static const int kAhead = kPaddingW % kVector;
static const int kPackets = kSpan < kAhead ? 0 : (kSpan - kAhead) / kVector;

// Whether a tile's packets lie inside of x, and its results inside of y.
__device__ inline bool is_whole(const Args& args, const Tile& tile) {
  const int first = tile.w * kStrideW - kPaddingW + kAhead;
  return first >= 0 && first + kPackets * kVector <= (int)args.x_w &&
         tile.w + kTileW <= (int)args.to_w;
}

__device__ inline void load_segment(const Args& args, const Tile& tile, int z, int y, int first,
                                    R (&segment)[kSpan]) {
  Index at[5];
#pragma unroll
  for (int packet = 0; packet < kPackets; ++packet) {
    const int i = kAhead + packet * kVector;
    R loaded[kVector];
    tile.locate(z, y, first + i, at);
    x_of<kVector>(args, at, loaded);
#pragma unroll
    for (int v = 0; v < kVector; ++v) segment[i + v] = loaded[v];
  }
#pragma unroll
  for (int i = 0; i < kSpan; ++i) {
    if (i >= kAhead && i < kAhead + kPackets * kVector) continue;
    R loaded[1];
    tile.locate(z, y, clamped(first + i, (int)args.x_w), at);
    x_of<1>(args, at, loaded);
    segment[i] = loaded[0];
  }
}

// kCount channels per result, or of a whole tile rows of x by packets and rows of results together.
template <int kCount, bool kWhole, int kHeight = kTileH, int kWidth = kTileW>
__device__ inline void pool(const Args& args, const Tile& tile) {
  constexpr int kLines = (kHeight - 1) * kStrideH + kWindowH;
  constexpr int kReach = (kWidth - 1) * kStrideW + kWindowW;
  const int first_z = tile.d * kStrideD - kPaddingD, first_y = tile.h * kStrideH - kPaddingH;
  const int first_x = tile.w * kStrideW - kPaddingW;
  const auto column = [&](int i) { return place<kPaddingW>(i, first_x, (int)args.x_w); };
  const auto line_of = [&](int kz, int r) {
    return place<kPaddingD>(kz, first_z, (int)args.x_d) * kWindowH +
           place<kPaddingH>(r, first_y, (int)args.x_h);
  };
  Pooled<kCount> windows[kHeight][kWidth];
#pragma unroll
  for (int p = 0; p < kHeight; ++p)
#pragma unroll
    for (int q = 0; q < kWidth; ++q)
      windows[p][q].clear(line_of(0, p * kStrideH) * kWindowW + column(q * kStrideW));

#pragma unroll(kUnrollRows)
  for (int row = 0; row < kWindowD * kLines; ++row) {
    const int kz = row / kLines, r = row % kLines;
    const int z = first_z + kz, y = first_y + r;
    const bool row_counts = is_within(z, (int)args.x_d) && is_within(y, (int)args.x_h);
    const int from_z = clamped(z, (int)args.x_d), from_y = clamped(y, (int)args.x_h);
    R segment[kWhole ? kReach : 1];
    if constexpr (kWhole) load_segment(args, tile, from_z, from_y, first_x, segment);
    Pooled<kCount> line[kWidth];
#pragma unroll
    for (int q = 0; q < kWidth; ++q) line[q].clear(column(q * kStrideW));
#pragma unroll(kUnrollSpan)
    for (int i = 0; i < kReach; ++i) {
      R x[kCount];
      if constexpr (kWhole) {
        x[0] = segment[i];
      } else {
        Index at[5];
        tile.locate(from_z, from_y, clamped(first_x + i, (int)args.x_w), at);
        x_of<kCount>(args, at, x);
      }
      // Averages leave out rows as a whole, and packets of a whole tile lie inside.
      const bool in_packet = kWhole && i >= kAhead && i < kAhead + kPackets * kVector;
      const bool counts = kInside || ((!kMaximum || row_counts) &&
                                      (in_packet || is_within(first_x + i, (int)args.x_w)));
#pragma unroll
      for (int v = 0; v < kCount; ++v) {
        if (kZeros && !counts) x[v] = (R)0;
        if (kMaximum && kPositions) x[v] += (R)0;  // -0 and NaNs in the form `differs` wants
      }
#pragma unroll
      for (int q = 0; q < kWidth; ++q) {
        const int k = i - q * kStrideW;
        if (k < 0 || k >= kWindowW) continue;
#pragma unroll
        for (int v = 0; v < kCount; ++v)
          line[q].take(v, x[v], column(i), kUnrollSpan >= kReach && k == 0);
      }
    }
    if (!kMaximum && !kInside && !row_counts) {
#pragma unroll
      for (int q = 0; q < kWidth; ++q) fill((R)0, line[q].value);
    }
    const int first_of_row = line_of(kz, r) * kWindowW;
#pragma unroll
    for (int p = 0; p < kHeight; ++p) {
      const int k = r - p * kStrideH;
      if (k < 0 || k >= kWindowH) continue;
#pragma unroll
      for (int q = 0; q < kWidth; ++q)
#pragma unroll
        for (int v = 0; v < kCount; ++v)
          windows[p][q].take(v, line[q].value[v], first_of_row + line[q].at[v],
                             kUnrollRows >= kWindowD * kLines && kz == 0 && k == 0);
    }
  }

#pragma unroll
  for (int p = 0; p < kHeight; ++p) {
    const int h = tile.h + p;
    if (h >= (int)args.to_h) break;
    if constexpr (!kMaximum) {
#pragma unroll
      for (int q = 0; q < kWidth; ++q) {
        const R count = (R)(kMode == 0 ? 1 : covered(args, tile.d, h, tile.w + q));
        const R inverse = reciprocal(count);
#pragma unroll
        for (int v = 0; v < kCount; ++v) {
          R& value = windows[p][q].value[v];
          value = kMode == 0 ? quotient<kWindowD * kWindowH * kWindowW>(value)
                             : quotient(value, count, inverse);
        }
      }
    }
    if constexpr (kPositions) {
#pragma unroll
      for (int q = 0; q < kWidth; ++q)
#pragma unroll
        for (int v = 0; v < kCount; ++v)
          windows[p][q].at[v] -= p * kStrideH * kWindowW + q * kStrideW;
    }
    Index at[5];
    if constexpr (kWhole && kTogether) {
      tile.locate(tile.d, h, tile.w, at);
      R values[kWidth];
      int positions[kWidth];
#pragma unroll
      for (int q = 0; q < kWidth; ++q) {
        values[q] = windows[p][q].value[0];
        positions[q] = windows[p][q].at[0];
      }
      keep<kWidth>(args, at, values, positions);
      continue;
    }
#pragma unroll
    for (int q = 0; q < kWidth; ++q) {
      if (tile.w + q >= (int)args.to_w) break;
      tile.locate(tile.d, h, tile.w + q, at);
      keep<kCount>(args, at, windows[p][q].value, windows[p][q].at);
    }
  }
}

// The results of a tile that is not whole, one by one.
__device__ inline void pool_one_by_one(const Args& args, const Tile& tile) {
  Tile one = tile;
#pragma unroll 1
  for (one.h = tile.h; one.h < min(tile.h + kTileH, (int)args.to_h); ++one.h)
#pragma unroll 1
    for (one.w = tile.w; one.w < min(tile.w + kTileW, (int)args.to_w); ++one.w)
      pool<1, false, 1, 1>(args, one);
}

extern "C" __global__ void __launch_bounds__(kThreads)
    pooling_forward_elements(const __grid_constant__ Args args) {
  const Tile tile = Tile::of_thread<1>(args);
  if (tile.exists) pool<1, false>(args, tile);
}
