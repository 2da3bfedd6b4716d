// Pooling, forward. Windows are reduced along w first, then rows into windows. Coordinates outside
// x are clamped to the nearest element, which the window contains anyway.

static const bool kMaximum = kMode == 2;
static const bool kZeros = !kMaximum || kOutside == 0;  // padding counts as 0
static const int kSpan = (kTileW - 1) * kStrideW + kWindowW;

// Whether a maximum changed, compared bitwise: inputs have no -0 and a single NaN pattern.
__device__ inline bool differs(float a, float b) {
  return __float_as_uint(a) != __float_as_uint(b);
}
__device__ inline bool differs(double a, double b) {
  return __double_as_longlong(a) != __double_as_longlong(b);
}

// A maximum or a sum, and the position in the tile where the maximum occurred first.
template <int kCount> struct Pooled {
  R value[kCount];
  int at[kCount];

  __device__ void clear(int first) {
    fill(kMaximum ? -(R)infinity() : (R)0, value);
    fill(first, at);
  }
  // `is_first`: this is the first element of the reduction.
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

// The position of element i of a tile that starts at `first`. Where padding does not count,
// elements outside x stand for the nearest element inside and have its position.
template <int kPadding> __device__ inline int place(int i, int first, int extent) {
  if (!kMaximum || kOutside != 1) return i;
  return min(i < kPadding ? max(i, -first) : i, extent - 1 - first);
}

// kSegments: the elements of a row of x under a tile's windows are loaded as packets from element
// kAhead on; those before and after one by one.
static const int kAhead = kPaddingW % kVector;
static const int kPackets = kSpan < kAhead ? 0 : (kSpan - kAhead) / kVector;

// Whether all packets of a tile lie inside x, and all its results inside y.
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

// kCount channels per result, or (kWhole) rows of x as packets and rows of results as vectors.
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
      // Averages mask whole rows below; packets of a whole tile lie inside x.
      const bool in_packet = kWhole && i >= kAhead && i < kAhead + kPackets * kVector;
      const bool counts = kInside || ((!kMaximum || row_counts) &&
                                      (in_packet || is_within(first_x + i, (int)args.x_w)));
#pragma unroll
      for (int v = 0; v < kCount; ++v) {
        if (kZeros && !counts) x[v] = (R)0;
        if (kMaximum && kPositions) x[v] += (R)0;  // canonical zero and NaN for differs()
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
    if constexpr (kWhole && kVectorStores) {
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

// The results of a partial tile, one by one.
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
