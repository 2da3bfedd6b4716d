// Depthwise convolution, backward-filter, rolling down a strip of kTileW columns and kTileH rows of
// dy. A thread keeps the last kSlots rows of dy in registers: those that a row of x multiplies.

static const int kSlots = (kWindowH - 1) / kStrideH + 1;

__device__ inline void add_products(const R (&line)[kSpanW][kVector],
                                    const R (&dy)[kTileW][kVector],
                                    R (&sums)[kWindowW][kVector]) {
#pragma unroll
  for (int k = 0; k < kWindowW; ++k)
#pragma unroll
    for (int q = 0; q < kTileW; ++q)
#pragma unroll
      for (int v = 0; v < kVector; ++v)
        sums[k][v] += line[q * kStrideW + k * kDilationW][v] * dy[q][v];
}

extern "C" __global__ void __launch_bounds__(kThreads, kBlocks)
    depthwise_filter_rows(const __grid_constant__ Args args) {
  const ThreadWork work = ThreadWork::of_thread(args);
  R sums[kWindowH][kWindowW][kVector];
#pragma unroll
  for (int j = 0; j < kWindowH; ++j)
#pragma unroll
    for (int k = 0; k < kWindowW; ++k) fill((R)0, sums[j][k]);

  const int end_number = work.works ? (int)args.tiles : 0;
  for (int number = work.first; number < end_number; number += work.step) {
    const Tile tile(args, number);
    const int first_x = tile.w * kStrideW - kPaddingW;
    const int end = min(tile.h + kTileH, (int)args.to_h);
    Gradient::Packet gradients[kAhead][kTileW];
    Source::Packet packets[kAhead][kStrideH][kSpanW];
    // The first of the kStrideH rows of x that multiply row t of dy and earlier rows, none later.
    const auto first_row = [&](int t) {
      return (t - kSlots + 1) * kStrideH + kWindowH - kStrideH - kPaddingH;
    };
    const auto load = [&](int t, int i) {
      load_line<Gradient>(args, end, args.to_w, tile.n, work.channel, tile.d, t, tile.w,
                          gradients[i]);
#pragma unroll
      for (int u = 0; u < kStrideH; ++u)
        load_line<Source>(args, args.from_h, args.from_w, tile.n, work.channel, tile.d,
                          first_row(t) + u, first_x, packets[i][u]);
    };
    R dy[kSlots][kTileW][kVector];
#pragma unroll
    for (int j = 0; j < kSlots; ++j)
#pragma unroll
      for (int q = 0; q < kTileW; ++q) fill((R)0, dy[j][q]);
#pragma unroll
    for (int i = 0; i < kAhead; ++i) load(tile.h + i, i);

    // Steps past the end multiply rows of zeros.
#pragma unroll 1
    for (int first = tile.h; first < end + kSlots - 1 && first_row(first) < (int)args.from_h;
         first += kUnroll) {
#pragma unroll
      for (int i = 0; i < kUnroll; ++i) {
        const int t = first + i;
#pragma unroll
        for (int j = kSlots - 1; j > 0; --j)
#pragma unroll
          for (int q = 0; q < kTileW; ++q) copy(dy[j - 1][q], dy[j][q]);
        widen_line<Gradient>(gradients[i % kAhead], dy[0]);
        R lines[kStrideH][kSpanW][kVector];
#pragma unroll
        for (int u = 0; u < kStrideH; ++u) widen_line<Source>(packets[i % kAhead][u], lines[u]);
        load(t + kAhead, i % kAhead);
        if (first_row(t) + kStrideH <= 0) continue;  // still above the first row of x
#pragma unroll
        for (int u = 0; u < kStrideH; ++u)
#pragma unroll
          for (int j = 0; j < kSlots; ++j) {
            const int kh = kWindowH - kStrideH + u - (kSlots - 1 - j) * kStrideH;
            if (kh < 0) continue;
            add_products(lines[u], dy[j], sums[kh < 0 ? 0 : kh]);
          }
      }
    }
  }
  store_partial(args, work, 0, sums);
}
