// Wgrad mainloop with both operands M/N-major in shared memory: a pixel is 128 bytes, 64 channels
// of 16 bits, so a tap is a row offset into x, because the swizzle is a function of the address.
// Rows follow one another without a gap. Where rows of dy are shorter than those of x, zeros
// follow; where a tap reaches past the end of a row of x, it reads the padding before the next row.
// A warpgroup has kRowBlocks boxes of dy, and boxes of x or taps of one box.
static const int kColumns = kTapsAcross * kXBoxes * 64;  // per warpgroup; one of the two is 1

// Shared memory of a stage: boxes of dy, boxes of x; kParts times these where f32 is split into
// bf16.
static const int kGroups = kSegments * kSegmentGroups;  // of 8 pixels
static const int kDyBoxBytes = kGroups * 1024;
static const int kXBoxBytes = kSegments * kXPitch * 128;
static const int kPartBytes = kDyBoxes * kDyBoxBytes + kXBoxes * kXBoxBytes;
static const int kStageBytes = kParts * kPartBytes;
typedef BufferPipeline<kStages, kStageBytes> StagePipeline;

// Zero-fills the pixels of all stages that no TMA load writes, once per launch.
__device__ inline void clear_rests(uint8* stages) {
  const auto clear = [&](uint8* box, int pitch, int used) {
    const int rest = pitch - used;
    for (int i = threadIdx.x; i < kSegments * rest * 8; i += kThreads) {
      const int segment = i / (rest * 8), at = i - segment * rest * 8;
      *(uint4*)(box + (segment * pitch + used) * 128 + at * 16) = make_uint4(0, 0, 0, 0);
    }
  };
  for (int part = 0; part < kStages * kParts; ++part) {
    uint8* dy = stages + part * kPartBytes;
    if constexpr (kSegmentGroups * 8 > kRows * kDyWidth)
      for (int box = 0; box < kDyBoxes; ++box)
        clear(dy + box * kDyBoxBytes, kSegmentGroups * 8, kRows * kDyWidth);
    if constexpr (kXPitch > kXRows * kXWidth)
      for (int box = 0; box < kXBoxes; ++box)
        clear(dy + kDyBoxes * kDyBoxBytes + box * kXBoxBytes, kXPitch, kXRows * kXWidth);
  }
  fence_proxy_async();
}

// Offset in a box of x, in groups of 8 pixels, of the first tap of group `group` of dy.
__device__ constexpr int x_group(int group) {
  return group / kSegmentGroups * (kXPitch / 8) + group % kSegmentGroups;
}
// Descriptor increment of K step `step` (16 pixels) for a box of x whose stride field is 0.
__device__ constexpr uint64 x_step(int step) {
  return (uint64)(x_group(2 * step) * 64) +
         ((uint64)((x_group(2 * step + 1) - x_group(2 * step)) * 64) << 32);
}

// Which bf16 parts of the operands are multiplied, smallest products first, so that they are not
// lost in a large accumulator. Products below the last bit of the f32 product are skipped.
static const int kProducts = kParts * (kParts + 1) / 2;
__device__ constexpr int dy_part(int product) {
  const int parts[3][6] = {{0}, {0, 1, 0}, {0, 2, 1, 0, 1, 0}};
  return parts[kParts - 1][product];
}
__device__ constexpr int x_part(int product) {
  const int parts[3][6] = {{0}, {1, 0, 0}, {2, 0, 1, 1, 0, 0}};
  return parts[kParts - 1][product];
}

// Issues the wgmma of a stage. `accumulate` is false for the first stage instead of zeroing
// registers: zeroed accumulators are written by non-wgmma instructions, and the compiler then
// serialises the wgmma of different row blocks.
__device__ inline void mma_stage(const uint8* stage, int first_box, int tap_row,
                                      Mma::Fragment (&accum)[kRowBlocks], bool accumulate) {
  const int kXStride = kTapsAcross > 1 ? kDilationW * 128 : kXBoxBytes;
  const uint64 dy = smem_descriptor<128>(stage + first_box * kDyBoxBytes, kDyBoxBytes, 1024);
  const uint64 x = smem_descriptor<128>(
      stage + kDyBoxes * kDyBoxBytes + tap_row * kDilationH * kXWidth * 128, kXStride, 0);
#pragma unroll
  for (int product = 0; product < kProducts; ++product)
#pragma unroll
    for (int step = 0; step < kGroups / 2; ++step)
#pragma unroll
      for (int r = 0; r < kRowBlocks; ++r)
        Mma::multiply(
            accum[r],
            advance_descriptor(dy, dy_part(product) * kPartBytes + r * kDyBoxBytes + step * 2048),
            advance_descriptor(x, x_part(product) * kPartBytes) + x_step(step),
            accumulate || product > 0 || step > 0);
}

// Stores the accumulators of 64 filters, or zeros, to [split][filter][tap][channel].
__device__ inline void store_partials(const Args& args, const WorkTile& work, int split, int box,
                                 int tap_row, const Mma::Fragment& accum) {
  const bool is_zero = kBlocks > 0 && split > work.split;
  const int lane = threadIdx.x % 32, tap_h = work.tap_h + tap_row;
  if (tap_h >= kWindowH) return;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int k = work.k + box * 64 + (int)(threadIdx.x / 32 % 4) * 16 + half * 8 + lane / 4;
    const int filter = work.group * (int)args.filters + k;
    if (k >= (int)args.filters || filter >= (int)args.all_filters) continue;
    const int64 row = (int64)split * (int)args.all_filters + filter;
    const int first_channel = kGroupsPerTile > 1 ? k / kGroupFilters * kGroupChannels : 0;
#pragma unroll
    for (int j = 0; j < Mma::kN / 8; ++j) {
      const int across = kTapsAcross > 1 ? j / 8 : 0, column = (j - across * 8) * 8;
      const int tap_w = work.tap_w + across, c = work.c + column + lane % 4 * 2;
      const int own = c - first_channel;
      if (tap_w >= kWindowW || own < 0 || own >= kGroupChannels) continue;
      int tap = (work.tap_d * kWindowH + tap_h) * kWindowW + tap_w;
      if constexpr (kFlip) tap = kWindowD * kWindowH * kWindowW - 1 - tap;
      float* to = (float*)args.partial +
                  (row * (kWindowD * kWindowH * kWindowW) + tap) * (int64)kGroupChannels + own;
      const float first = is_zero ? 0 : accum[4 * j + 2 * half];
      const float second = is_zero ? 0 : accum[4 * j + 2 * half + 1];
      store_pair(to, own, first, second);
    }
  }
}

// For all boxes of a warpgroup; zero-fills the slots that the tile does not use.
__device__ inline void store_partials(const Args& args, const WorkTile& work, int first_box,
                                      int tap_row, const Mma::Fragment (&accum)[kRowBlocks]) {
  const int end = kBlocks > 0 ? work.end_split : work.split + 1;
#pragma unroll 1
  for (int split = work.split; split < end; ++split)
#pragma unroll
    for (int r = 0; r < kRowBlocks; ++r)
      store_partials(args, work, split, first_box + r, tap_row, accum[r]);
}
