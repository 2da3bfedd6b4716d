// Depthwise convolution, backward-filter of stride 1 along H, a strip of kTileW columns at a time. A
// thread walks down its strip, kTileH rows of dy, of which it remembers the last kWindowH: those
// that a row of x meets.

extern "C" __global__ void __launch_bounds__(kThreads, kBlocks)
    depthwise_filter_rows(const __grid_constant__ Args args) {
  const Place place = Place::of_thread(args);
  R sums[kWindowH][kWindowW][kVector];
#pragma unroll
  for (int j = 0; j < kWindowH; ++j)
#pragma unroll
    for (int k = 0; k < kWindowW; ++k) fill((R)0, sums[j][k]);

  const int end_number = place.works ? (int)args.tiles : 0;
  for (int number = place.first; number < end_number; number += place.step) {
    const Tile tile(args, number);
    const int first_x = tile.w * kStrideW - kPaddingW;
    const int end = min(tile.h + kTileH, (int)args.to_h);
    Gradient::Packet gradients[kAhead][kTileW];
    Source::Packet packets[kAhead][kSpanW];
    // Row t of dy, and the row of x that it meets first.
    const auto load = [&](int t, int i) {
      load_line<Gradient>(args, end, args.to_w, tile.n, place.channel, tile.d, t, tile.w,
                          gradients[i]);
      load_line<Source>(args, args.from_h, args.from_w, tile.n, place.channel, tile.d,
                        t - kPaddingH, first_x, packets[i]);
    };
    R dy[kWindowH][kTileW][kVector];
#pragma unroll
    for (int j = 0; j < kWindowH; ++j)
#pragma unroll
      for (int q = 0; q < kTileW; ++q) fill((R)0, dy[j][q]);
#pragma unroll
    for (int i = 0; i < kAhead; ++i) load(tile.h + i, i);

    // Steps past the last one meet rows of zeros.
    const int last = min(end + kWindowH - 1, (int)args.from_h + kPaddingH);
#pragma unroll 1
    for (int first = tile.h; first < last; first += kUnroll) {
#pragma unroll
      for (int i = 0; i < kUnroll; ++i) {
        const int t = first + i;
#pragma unroll
        for (int j = kWindowH - 1; j > 0; --j)
#pragma unroll
          for (int q = 0; q < kTileW; ++q) copy(dy[j - 1][q], dy[j][q]);
        widen_line<Gradient>(gradients[i % kAhead], dy[0]);
        R line[kSpanW][kVector];
        widen_line<Source>(packets[i % kAhead], line);
        load(t + kAhead, i % kAhead);
        if (t < kPaddingH) continue;  // x has not begun
#pragma unroll
        for (int j = 0; j < kWindowH; ++j)
#pragma unroll
          for (int k = 0; k < kWindowW; ++k)
#pragma unroll
            for (int q = 0; q < kTileW; ++q)
#pragma unroll
              for (int v = 0; v < kVector; ++v)
                sums[j][k][v] += line[q * kStrideW + k * kDilationW][v] * dy[j][q][v];
      }
    }
  }
  keep_partial(args, place, 0, sums);
}
