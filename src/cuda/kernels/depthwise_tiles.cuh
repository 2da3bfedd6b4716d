// Depthwise convolution, forward and backward-data, with a whole tile in registers. Along an axis,
// result q of a tile and tap k read the source at a compile-time offset from the tile's origin:
//   forward:        q * stride + k * dilation - padding, origin tile * stride
//   backward-data: (q + padding - k * dilation) / stride if integral, origin tile / stride
// (tiles of backward-data start at multiples of the stride). All offsets lie in
// [kFirst, kFirst + kSpan).

static const int kNowhere = -1 << 20;
// The tap k whose offset is `at`, or kNowhere.
__device__ constexpr int tap_at(int q, int at, int stride, int dilation, int padding, int window) {
  const int t = kBackward ? q + padding - at * stride : at + padding - q * stride;
  return t < 0 || t % dilation != 0 || t / dilation >= window ? kNowhere : t / dilation;
}
__device__ constexpr int distance(int q, int k, int stride, int dilation, int padding) {
  if (!kBackward) return q * stride + k * dilation - padding;
  const int t = q + padding - k * dilation;
  return t % stride != 0 ? kNowhere : t / stride;
}

extern "C" __global__ void __launch_bounds__(kThreads, kBlocks)
    depthwise_tiles(const __grid_constant__ Args args) {
  const ThreadWork work = ThreadWork::of_thread(args);
  const R* weights = stage_weights(args);
  if (!work.works) return;
  const R* own = weights + work.lane * kVector;

  for (int number = work.first; number < (int)args.tiles; number += work.step) {
    const Tile tile(args, number);
    R sums[kTileH][kTileW][kVector];
#pragma unroll
    for (int p = 0; p < kTileH; ++p)
#pragma unroll
      for (int q = 0; q < kTileW; ++q) fill((R)0, sums[p][q]);
    const int first_h = kBackward ? tile.h / kStrideH : tile.h * kStrideH;
    const int first_w = (kBackward ? tile.w / kStrideW : tile.w * kStrideW) + kFirstW;

    for (int kd = 0; kd < kWindowD; ++kd) {
      int z = tile.d * kStrideD + kd * kDilationD - kPaddingD;
      if (kBackward) {
        z = tile.d + kPaddingD - kd * kDilationD;
        if (z % kStrideD != 0) continue;
        z /= kStrideD;
      }
      if (!is_within(z, (int)args.from_d)) continue;
      const R* plane = own + kd * kWindowH * kWindowW * kRowChannels;
      // Prefetches row r of the source, one row ahead of the multiplication.
      Source::Packet packets[kSpanW];
      const auto load = [&](int r) {
        load_line<Source>(args, args.from_h, args.from_w, tile.n, work.channel, z,
                          first_h + kFirstH + r, first_w, packets);
      };
      load(0);
#pragma unroll
      for (int r = 0; r < kSpanH; ++r) {
        R line[kSpanW][kVector];
        widen_line<Source>(packets, line);
        if (r + 1 < kSpanH) load(r + 1);
#pragma unroll
        for (int p = 0; p < kTileH; ++p) {
          const int kh = tap_at(p, kFirstH + r, kStrideH, kDilationH, kPaddingH, kWindowH);
          if (kh < 0) continue;
#pragma unroll
          for (int kw = 0; kw < kWindowW; ++kw) {
            R weight[kVector];
#pragma unroll
            for (int v = 0; v < kVector; ++v)
              weight[v] = plane[(kh * kWindowW + kw) * kRowChannels + v];
#pragma unroll
            for (int q = 0; q < kTileW; ++q) {
              const int at = distance(q, kw, kStrideW, kDilationW, kPaddingW) - kFirstW;
              if (at < 0) continue;
#pragma unroll
              for (int v = 0; v < kVector; ++v)
                sums[p][q][v] += line[at < kSpanW ? at : 0][v] * weight[v];
            }
          }
        }
      }
    }

    Index at[5];
#pragma unroll
    for (int p = 0; p < kTileH; ++p) {
      if (tile.h + p >= (int)args.to_h) break;
      if (kVectorStores && kVector == 1 && tile.w + kTileW <= (int)args.to_w) {
        locate(tile.n, work.channel, tile.d, tile.h + p, tile.w, at);
        R row[kTileW];
#pragma unroll
        for (int q = 0; q < kTileW; ++q) row[q] = sums[p][q][0];
        keep<kTileW>(args, at, row);
      } else {
#pragma unroll
        for (int q = 0; q < kTileW; ++q) {
          if (tile.w + q >= (int)args.to_w) break;
          locate(tile.n, work.channel, tile.d, tile.h + p, tile.w + q, at);
          keep<kVector>(args, at, sums[p][q]);
        }
      }
    }
  }
}
