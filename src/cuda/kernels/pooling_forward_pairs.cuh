// Pooling, forward: maxima of 16-bit floats with their positions, two channels per packed
// instruction (half2). Windows are reduced row by row as in pooling_forward.cuh. Comparisons are
// false for NaN: where a maximum is NaN, its position is searched afterwards.
#include "lib/ptx_pairs.cuh"

static const int kPairs = kVector / 2;
static const int kRows = (kTileH - 1) * kStrideH + kWindowH;

struct PooledPairs {
  uint32 value[kPairs], at[kPairs];

  // `is_first`: this is the first element of the reduction.
  __device__ void take(int v, uint32 seen, uint32 position, bool is_first) {
    if (is_first) {
      value[v] = seen;
      at[v] = position;
    } else {
      const uint32 moved = greater_pair(Half(), seen, value[v]);
      value[v] = max_pair_or_nan(Half(), value[v], seen);
      at[v] = (at[v] & ~moved) | (position & moved);
    }
  }
};

template <class D>
__device__ inline void load_pairs(D, const void* data, int64 index, uint32 (&to)[kPairs]) {
  Vector<kPairs, uint32> u;
  const auto* from = (const typename Vector<kPairs, uint32>::Piece*)((const uint16*)data + index);
#pragma unroll
  for (int i = 0; i < Vector<kPairs, uint32>::kPieces; ++i) u.pieces[i] = load_read_only(from + i);
#pragma unroll
  for (int v = 0; v < kPairs; ++v) to[v] = u.words[v];
}

// Positions of the first NaN of each channel in the window that starts at (z, y, x).
__device__ inline void find_nans(const Args& args, const Tile& tile, int z, int y, int x,
                                 int (&positions)[kVector]) {
  uint32 found = 0;
#pragma unroll 1
  for (int tap = 0; tap < kWindowD * kWindowH * kWindowW; ++tap) {
    const int d = z + tap / (kWindowH * kWindowW), h = y + tap / kWindowW % kWindowH,
              w = x + tap % kWindowW;
    if (!is_within(d, (int)args.x_d) || !is_within(h, (int)args.x_h) ||
        !is_within(w, (int)args.x_w))
      continue;
    Index at[5];
    R seen[kVector];
    tile.locate(d, h, w, at);
    x_of<kVector>(args, at, seen);
#pragma unroll
    for (int v = 0; v < kVector; ++v) {
      if (seen[v] == seen[v] || (found >> v & 1u) != 0) continue;
      positions[v] = tap;
      found |= 1u << v;
    }
  }
}

extern "C" __global__ void __launch_bounds__(kThreads)
    pooling_forward(const __grid_constant__ Args args) {
  const Tile tile = Tile::of_thread<kVector>(args);
  if (!tile.exists) return;
  const int first_z = tile.d * kStrideD - kPaddingD, first_y = tile.h * kStrideH - kPaddingH;
  const int first_x = tile.w * kStrideW - kPaddingW;
  PooledPairs windows[kTileH][kTileW];
#pragma unroll
  for (int row = 0; row < kWindowD * kRows; ++row) {
    const int kz = row / kRows, r = row % kRows;
    PooledPairs line[kTileW];
#pragma unroll
    for (int i = 0; i < kSpan; ++i) {
      Index at[5];
      uint32 x[kPairs];
      tile.locate(clamped(first_z + kz, (int)args.x_d), clamped(first_y + r, (int)args.x_h),
                  clamped(first_x + i, (int)args.x_w), at);
      x_pairs(args, at, x);
      const uint32 position = both(place<kPaddingW>(i, first_x, (int)args.x_w));
#pragma unroll
      for (int q = 0; q < kTileW; ++q) {
        const int k = i - q * kStrideW;
        if (k < 0 || k >= kWindowW) continue;
#pragma unroll
        for (int v = 0; v < kPairs; ++v) line[q].take(v, x[v], position, k == 0);
      }
    }
    const uint32 first_of_row = both((place<kPaddingD>(kz, first_z, (int)args.x_d) * kWindowH +
                                      place<kPaddingH>(r, first_y, (int)args.x_h)) *
                                     kWindowW);
#pragma unroll
    for (int p = 0; p < kTileH; ++p) {
      const int k = r - p * kStrideH;
      if (k < 0 || k >= kWindowH) continue;
#pragma unroll
      for (int q = 0; q < kTileW; ++q)
#pragma unroll
        for (int v = 0; v < kPairs; ++v)
          windows[p][q].take(v, line[q].value[v], first_of_row + line[q].at[v],
                             kz == 0 && k == 0);
    }
  }

#pragma unroll
  for (int p = 0; p < kTileH; ++p)
#pragma unroll
    for (int q = 0; q < kTileW; ++q) {
      if (tile.h + p >= (int)args.to_h || tile.w + q >= (int)args.to_w) continue;
      const PooledPairs& window = windows[p][q];
      const int before = p * kStrideH * kWindowW + q * kStrideW;
      R values[kVector];
      int positions[kVector];
      bool has_nan = false;
#pragma unroll
      for (int v = 0; v < kVector; ++v) {
        const int shift = v % 2 * 16;
        values[v] = widen(Half(), (uint16)(window.value[v / 2] >> shift));
        positions[v] = (int)(window.at[v / 2] >> shift & 0xffffu) - before;
        has_nan = has_nan || values[v] != values[v];
      }
      if (has_nan)
        find_nans(args, tile, first_z, first_y + p * kStrideH, first_x + q * kStrideW, positions);
      Index at[5];
      tile.locate(tile.d, tile.h + p, tile.w + q, at);
      keep<kVector>(args, at, values, positions);
    }
}
