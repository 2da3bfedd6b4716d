// Depthwise convolution, forward and backward-data of stride 1 (forward with the flipped filter),
// rolling down a strip of kTileW columns and kTileH rows of results. A row of the source is read
// once and added to the kSlots rows of results that use it: row t, which it completes, and those
// below.

static const int kSlots = (kWindowH - 1) / kStrideH + 1;
static const int kBeforeH = kBackward ? (kWindowH - 1) * kDilationH - kPaddingH : kPaddingH;
static const int kBeforeW = kBackward ? (kWindowW - 1) * kDilationW - kPaddingW : kPaddingW;

// Weights in registers (kKeepsWeights), or read from shared memory at each use.
struct Weights {
  const R* own;
  R kept[kKeepsWeights ? kWindowH * kWindowW : 1][kVector];

  __device__ Weights(const R* from) : own(from) {
    if constexpr (kKeepsWeights) {
#pragma unroll
      for (int tap = 0; tap < kWindowH * kWindowW; ++tap) read(tap, kept[tap]);
    }
  }
  __device__ void read(int tap, R (&weight)[kVector]) const {
    const int stored = kBackward ? kWindowH * kWindowW - 1 - tap : tap;
#pragma unroll
    for (int v = 0; v < kVector; ++v) weight[v] = own[stored * kRowChannels + v];
  }
  __device__ void take(int tap, R (&weight)[kVector]) const {
    if constexpr (kKeepsWeights) {
      copy(kept[tap], weight);
    } else {
      read(tap, weight);
    }
  }
};

typedef R Strip[kTileW][kVector];

// Adds the contribution of kStrideH source rows to row t + slot of the results.
__device__ inline void add_rows(const Weights& weights, int slot,
                                const R (&lines)[kStrideH][kSpanW][kVector], Strip& sums) {
#pragma unroll
  for (int u = 0; u < kStrideH; ++u) {
    const int kh = kWindowH - kStrideH + u - slot * kStrideH;
    if (kh < 0) continue;
#pragma unroll
    for (int kw = 0; kw < kWindowW; ++kw) {
      R weight[kVector];
      weights.take(kh * kWindowW + kw, weight);
#pragma unroll
      for (int q = 0; q < kTileW; ++q)
#pragma unroll
        for (int v = 0; v < kVector; ++v)
          sums[q][v] += lines[u][q * kStrideW + kw * kDilationW][v] * weight[v];
    }
  }
}

__device__ inline void store_strip(const Args& args, const Tile& tile, int channel, int h,
                                  Strip& sums) {
  Index at[5];
  if constexpr (kVectorStores && kVector == 1) {
    if (tile.w + kTileW <= (int)args.to_w) {
      locate(tile.n, channel, tile.d, h, tile.w, at);
      R row[kTileW];
#pragma unroll
      for (int q = 0; q < kTileW; ++q) row[q] = sums[q][0];
      keep<kTileW>(args, at, row);
      return;
    }
  }
  const auto keep_column = [&](int q) {
    locate(tile.n, channel, tile.d, h, tile.w + q, at);
    keep<kVector>(args, at, sums[q]);
  };
  if (tile.w + kTileW <= (int)args.to_w) {
#pragma unroll
    for (int q = 0; q < kTileW; ++q) keep_column(q);
  } else {
#pragma unroll
    for (int q = 0; q < kTileW; ++q)
      if (tile.w + q < (int)args.to_w) keep_column(q);
  }
}

// Shifts the rows of results by one: from row t to row t + 1.
__device__ inline void move_up(Strip (&sums)[kSlots]) {
#pragma unroll
  for (int slot = 0; slot < kSlots; ++slot)
#pragma unroll
    for (int q = 0; q < kTileW; ++q) {
      if (slot + 1 < kSlots)
        copy(sums[slot + 1 < kSlots ? slot + 1 : slot][q], sums[slot][q]);
      else
        fill((R)0, sums[slot][q]);
    }
}

extern "C" __global__ void __launch_bounds__(kThreads, kBlocks)
    depthwise_rows(const __grid_constant__ Args args) {
  const ThreadWork work = ThreadWork::of_thread(args);
  const R* staged = stage_weights(args);
  if (!work.works) return;
  const Weights weights(staged + work.lane * kVector);

  for (int number = work.first; number < (int)args.tiles; number += work.step) {
    const Tile tile(args, number);
    Strip sums[kSlots];
#pragma unroll
    for (int slot = 0; slot < kSlots; ++slot)
#pragma unroll
      for (int q = 0; q < kTileW; ++q) fill((R)0, sums[slot][q]);

    const int first_w = tile.w * kStrideW - kBeforeW;
    // The first of the kStrideH source rows that complete row t of the results.
    const auto first_row = [&](int t) {
      return t * kStrideH + kWindowH - kStrideH - kBeforeH;
    };
    Source::Packet packets[kAhead][kStrideH][kSpanW];
    const auto load = [&](int t, int place_of_row) {
#pragma unroll
      for (int u = 0; u < kStrideH; ++u)
        load_line<Source>(args, args.from_h, args.from_w, tile.n, work.channel, tile.d,
                          first_row(t) + u, first_w, packets[place_of_row][u]);
    };
    const int end = min(tile.h + kTileH, (int)args.to_h);
    int t = tile.h - (kSlots - 1);
    while (first_row(t) + kStrideH <= 0 && t < tile.h) ++t;  // rows above the image
#pragma unroll
    for (int i = 0; i < kAhead; ++i) load(t + i, i);
#pragma unroll 1
    while (t < end && first_row(t) < (int)args.from_h) {
#pragma unroll
      for (int i = 0; i < kAhead; ++i) {
        R lines[kStrideH][kSpanW][kVector];
#pragma unroll
        for (int u = 0; u < kStrideH; ++u) widen_line<Source>(packets[i][u], lines[u]);
        load(t + kAhead, i);
        add_rows(weights, 0, lines, sums[0]);
        if (t >= tile.h && t < end) store_strip(args, tile, work.channel, t, sums[0]);
#pragma unroll
        for (int slot = 1; slot < kSlots; ++slot) add_rows(weights, slot, lines, sums[slot]);
        move_up(sums);
        ++t;
      }
    }
    for (; t < end; ++t) {  // rows below the image
      if (t >= tile.h) store_strip(args, tile, work.channel, t, sums[0]);
      move_up(sums);
    }
  }
}
