// Pooling, forward. Windows are taken row by row: first along w, then rows into windows. Elements
// outside of x are read as the nearest one inside, which the window has anyway.

static const bool kMaximum = kMode == 2;
static const bool kZeros = !kMaximum || kOutside == 0;  // what is outside counts as 0
static const int kRows = (kTileH - 1) * kStrideH + kWindowH;
static const int kSpan = (kTileW - 1) * kStrideW + kWindowW;

// A maximum or a sum, and where in the window the maximum was first; -1: nothing seen.
template <int kCount> struct Pooled {
  R value[kCount];
  int at[kCount];

  __device__ void clear() {
#pragma unroll
    for (int v = 0; v < kCount; ++v) {
      value[v] = kMaximum ? -(R)infinity() : (R)0;
      at[v] = -1;
    }
  }
  __device__ void take(int v, R seen, int position, bool counts) {
    if (kMaximum && kPositions) {
      const bool wins = counts && (at[v] < 0 || seen > value[v] ||
                                   (seen != seen && value[v] == value[v]));
      value[v] = wins ? seen : value[v];
      at[v] = wins ? position : at[v];
    } else if (kMaximum) {
      value[v] = max_or_nan(value[v], seen);
    } else {
      value[v] += seen;
    }
  }
};

// The elements of one row of x that the tile's windows see, from column `first` on: by packets that
// begin at a multiple of kVector, the others one by one.
__device__ inline void load_segment(const Args& args, const Tile& tile, int z, int y, int first,
                                    R (&segment)[kSpan]) {
  constexpr int kAhead = kPaddingW % kVector;  // elements before the first packet
  constexpr int kPackets = kSpan < kAhead ? 0 : (kSpan - kAhead) / kVector;
  const int extent = (int)args.x_w;
  Index at[5];
  const auto load_one = [&](int i, int from) {
    R loaded[1];
    tile.locate(z, y, clamped(from + i, extent), at);
    x_of<1>(args, at, loaded);
    segment[i] = loaded[0];
  };
#pragma unroll
  for (int packet = 0; packet < kPackets; ++packet) {
    const int i = kAhead + packet * kVector;
    if (first + i >= 0 && first + i + kVector <= extent) {
      R loaded[kVector];
      tile.locate(z, y, first + i, at);
      x_of<kVector>(args, at, loaded);
#pragma unroll
      for (int v = 0; v < kVector; ++v) segment[i + v] = loaded[v];
    } else {
      const int from = opaque(first);
#pragma unroll
      for (int v = 0; v < kVector; ++v) load_one(i + v, from);
    }
  }
#pragma unroll
  for (int i = 0; i < kSpan; ++i)
    if (i < kAhead || i >= kAhead + kPackets * kVector) load_one(i, first);
}

// kCount channels per result, or with kWhole rows of x by packets and rows of results together.
template <int kCount, bool kWhole>
__device__ inline void pool(const Args& args) {
  const Tile tile = Tile::of_thread<kCount>(args);
  if (!tile.exists) return;
  Pooled<kCount> windows[kTileH][kTileW];
#pragma unroll
  for (int p = 0; p < kTileH; ++p)
#pragma unroll
    for (int q = 0; q < kTileW; ++q) windows[p][q].clear();

  const int first_z = tile.d * kStrideD - kPaddingD, first_y = tile.h * kStrideH - kPaddingH;
  const int first_x = tile.w * kStrideW - kPaddingW;
#pragma unroll(kUnrollRows)
  for (int row = 0; row < kWindowD * kRows; ++row) {
    const int kz = row / kRows, r = row % kRows;
    const int z = first_z + kz, y = first_y + r;
    const bool row_counts = is_within(z, (int)args.x_d) && is_within(y, (int)args.x_h);
    const int from_z = clamped(z, (int)args.x_d), from_y = clamped(y, (int)args.x_h);
    R segment[kWhole ? kSpan : 1];
    if constexpr (kWhole) load_segment(args, tile, from_z, from_y, first_x, segment);
    Pooled<kCount> line[kTileW];
#pragma unroll
    for (int q = 0; q < kTileW; ++q) line[q].clear();
#pragma unroll(kUnrollSpan)
    for (int i = 0; i < kSpan; ++i) {
      R x[kCount];
      if constexpr (kWhole) {
        x[0] = segment[i];
      } else {
        Index at[5];
        tile.locate(from_z, from_y, clamped(first_x + i, (int)args.x_w), at);
        x_of<kCount>(args, at, x);
      }
      const bool counts = row_counts && is_within(first_x + i, (int)args.x_w);
#pragma unroll
      for (int q = 0; q < kTileW; ++q) {
        const int k = i - q * kStrideW;
        if (k < 0 || k >= kWindowW) continue;
#pragma unroll
        for (int v = 0; v < kCount; ++v)
          line[q].take(v, kZeros && !counts ? (R)0 : x[v], k, counts || kOutside != 1);
      }
    }
#pragma unroll
    for (int p = 0; p < kTileH; ++p) {
      const int k = r - p * kStrideH;
      if (k < 0 || k >= kWindowH) continue;
#pragma unroll
      for (int q = 0; q < kTileW; ++q)
#pragma unroll
        for (int v = 0; v < kCount; ++v)
          windows[p][q].take(v, line[q].value[v], (kz * kWindowH + k) * kWindowW + line[q].at[v],
                             line[q].at[v] >= 0);
    }
  }

#pragma unroll
  for (int p = 0; p < kTileH; ++p) {
    const int h = tile.h + p;
    if (h >= (int)args.to_h) break;
    if constexpr (!kMaximum) {
#pragma unroll
      for (int q = 0; q < kTileW; ++q) {
        const R count = (R)(kMode == 0 ? 1 : covered(args, tile.d, h, tile.w + q));
        const R reciprocal = (R)1 / count;
#pragma unroll
        for (int v = 0; v < kCount; ++v) {
          R& value = windows[p][q].value[v];
          value = kMode == 0 ? quotient<kWindowD * kWindowH * kWindowW>(value)
                             : quotient(value, count, reciprocal);
        }
      }
    }
    Index at[5];
    if (kWhole && kTogether && tile.w + kTileW <= (int)args.to_w) {
      tile.locate(tile.d, h, tile.w, at);
      R values[kTileW];
      int positions[kTileW];
#pragma unroll
      for (int q = 0; q < kTileW; ++q) {
        values[q] = windows[p][q].value[0];
        positions[q] = windows[p][q].at[0];
      }
      keep<kTileW>(args, at, values, positions);
    } else {
#pragma unroll
      for (int q = 0; q < kTileW; ++q) {
        if (tile.w + q >= (int)args.to_w) break;
        tile.locate(tile.d, h, tile.w + q, at);
        keep<kCount>(args, at, windows[p][q].value, windows[p][q].at);
      }
    }
  }
}

extern "C" __global__ void __launch_bounds__(kThreads)
    pooling_forward(const __grid_constant__ Args args) {
  pool<kColumns ? kVector : 1, kSegments != 0>(args);
}
extern "C" __global__ void __launch_bounds__(kThreads)
    pooling_forward_elements(const __grid_constant__ Args args) {
  pool<1, false>(args);
}
