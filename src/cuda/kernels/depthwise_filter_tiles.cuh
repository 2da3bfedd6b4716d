// Depthwise convolution, backward-filter, with a whole tile of dy in registers.

extern "C" __global__ void __launch_bounds__(kThreads, kBlocks)
    depthwise_filter_tiles(const __grid_constant__ Args args) {
  const ThreadWork work = ThreadWork::of_thread(args);
  const int parts = (kWindowH + kPart - 1) / kPart;
  const int kd = blockIdx.z / parts, first_kh = (int)(blockIdx.z % parts) * kPart;
  R sums[kPart][kWindowW][kVector];
#pragma unroll
  for (int j = 0; j < kPart; ++j)
#pragma unroll
    for (int k = 0; k < kWindowW; ++k) fill((R)0, sums[j][k]);

  const int end = work.works ? (int)args.tiles : 0;
  for (int number = work.first; number < end; number += work.step) {
    const Tile tile(args, number);
    const int z = tile.d * kStrideD + kd * kDilationD - kPaddingD;
    if (!is_within(z, (int)args.from_d)) continue;
    R dy[kTileH][kTileW][kVector];
    Gradient::Packet gradients[kTileH][kTileW];
#pragma unroll
    for (int p = 0; p < kTileH; ++p)
      load_line<Gradient>(args, args.to_h, args.to_w, tile.n, work.channel, tile.d, tile.h + p,
                          tile.w, gradients[p]);
    const int first_y = tile.h * kStrideH + first_kh * kDilationH - kPaddingH;
    const int first_x = tile.w * kStrideW - kPaddingW;
    // Prefetches row r of x, one row ahead of the multiplication.
    Source::Packet packets[kSpanW];
    const auto load = [&](int r) {
      load_line<Source>(args, args.from_h, args.from_w, tile.n, work.channel, z, first_y + r,
                        first_x, packets);
    };
    load(0);
#pragma unroll
    for (int p = 0; p < kTileH; ++p) widen_line<Gradient>(gradients[p], dy[p]);
#pragma unroll
    for (int r = 0; r < kSpanH; ++r) {
      R line[kSpanW][kVector];
      widen_line<Source>(packets, line);
      if (r + 1 < kSpanH) load(r + 1);
#pragma unroll
      for (int p = 0; p < kTileH; ++p) {
        const int t = r - p * kStrideH, j = t / kDilationH;  // the row of taps between the two
        if (t < 0 || t % kDilationH != 0 || j >= kPart) continue;
#pragma unroll
        for (int k = 0; k < kWindowW; ++k)
#pragma unroll
          for (int q = 0; q < kTileW; ++q)
#pragma unroll
            for (int v = 0; v < kVector; ++v)
              sums[j][k][v] += line[q * kStrideW + k * kDilationW][v] * dy[p][q][v];
      }
    }
  }
  store_partial(args, work, kd * kWindowH + first_kh, sums);
}
