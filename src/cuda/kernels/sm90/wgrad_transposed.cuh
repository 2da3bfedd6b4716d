// Wgrad of f32 as tf32. wgmma reads tf32 from shared memory K-major only, and K are pixels here. So
// x comes from registers, and dy is transposed once for all taps:
//
// A segment is 8 runs of kSteps pixels of a row: rows 0 to 7, or (kRows 4) the two halves of rows 0
// to 3; or, with a single tap, every 8th pixel. K step s is pixel s of every run. Thread t of a
// warpgroup holds runs t % 4 and t % 4 + 4, two channels each: four registers, the A fragment of a
// pixel. For the adjacent tap the same registers are the previous pixel: every pixel is loaded once
// for kTapsAcross wgmma.
//
// Three warps transpose dy from pixel-major to K-major: the 8 pixels of a step are contiguous for
// every filter. Filters are permuted to avoid bank conflicts of the stores; filter_of() inverts the
// permutation.
static const int kTransposeWarps = 3;  // warps
static const int kTransposedSlots = 2;
static const int kSteps = kRows * kDyWidth / 8;
// Strides in pixels of x and of dy: between the runs of one group of four, between the two groups
// of four, between K steps.
static const bool kSingle = kTapRows * kTapsAcross == 1;
static const int kXRun = kSingle ? 1 : kXWidth, kDyRun = kSingle ? 1 : kDyWidth;
static const int kXFour = kSingle ? 4 : kRows == 8 ? 4 * kXWidth : kSteps;
static const int kDyFour = kSingle ? 4 : kRows == 8 ? 4 * kDyWidth : kSteps;
static const int kStepPixels = kSingle ? 8 : 1;
static const int kXBoxBytes = kXPitch * 128;            // 32 channels
static const int kDyBoxBytes = kRows * kDyWidth * 256;  // 64 filters
static const int kStageBytes = 2 * kXBoxes * kXBoxBytes + kDyBoxes * kDyBoxBytes;
static const int kStepsBytes = kDyBoxes * 64 * 128;  // 4 steps of all filters, transposed
static const int kTransposedBytes = (kSteps + 3) / 4 * kStepsBytes;
typedef BufferPipeline<kStages, kStageBytes> StagePipeline;
typedef BufferPipeline<kTransposedSlots, kTransposedBytes> TransposedPipeline;

// The TMA producer, one thread. Stages: boxes of x, then of dy.
__device__ inline void produce(const Args& args, const WorkTile& work, StagePipeline& pipeline) {
  const int kBytes = 2 * kXBoxes * kXRows * kXWidth * 128 + kDyBoxes * kDyBoxBytes;
  SegmentCoord coord(args, work.first);
  for (int i = 0; i < work.count; ++i, pipeline.next(), coord.advance(args)) {
    Mbarrier* full = pipeline.producer_acquire(kBytes);
    uint8 *x = pipeline.buffer(), *dy = x + 2 * kXBoxes * kXBoxBytes;
#pragma unroll
    for (int box = 0; box < kDyBoxes; ++box)
      load_dy(args, work, coord, box * 64, 0, dy + box * kDyBoxBytes, full);
#pragma unroll
    for (int box = 0; box < 2 * kXBoxes; ++box)
      load_x(args, work, coord, box * 32, 0, x + box * kXBoxBytes, full);
  }
}

// The filter, of 64, that is column `column` of the transposed dy.
__device__ constexpr int filter_of(int column) {
  return column / 32 * 32 + column % 8 * 4 + column / 8 % 4;
}

// Transposes dy, one warp. A lane has 4 filters of the first or the second 4 runs: 16 values of a
// step. Eight lanes read 128 bytes of a pixel and write to eight columns with different swizzles.
__device__ inline void transpose_dy(const WorkTile& work, StagePipeline& pipeline,
                                    TransposedPipeline& transposed, int warp) {
  const int lane = threadIdx.x % 32, half = lane / 16, piece = lane % 16;
  const int column = piece / 8 * 32 + piece % 8;
  for (int i = 0; i < work.count; ++i, pipeline.next(), transposed.next()) {
    const uint8* from =
        pipeline.buffer() + 2 * kXBoxes * kXBoxBytes + half * kDyFour * 256 + piece * 16;
    uint8* to = transposed.buffer() + column * 128;
    pipeline.consumer_wait();
    transposed.producer_acquire();
#pragma unroll 1
    for (int at = warp; at < kDyBoxes * kSteps; at += kTransposeWarps) {
      const int box = at / kSteps, step = at - box * kSteps;
      uint4 runs[4];
#pragma unroll
      for (int run = 0; run < 4; ++run)
        runs[run] =
            *(const uint4*)(from + box * kDyBoxBytes + (run * kDyRun + step * kStepPixels) * 256);
      uint8* own =
          to + step / 4 * kStepsBytes + box * 64 * 128 + ((step % 4 * 2 + half) ^ (piece % 8)) * 16;
      *(uint4*)own = make_uint4(runs[0].x, runs[1].x, runs[2].x, runs[3].x);
      *(uint4*)(own + 1024) = make_uint4(runs[0].y, runs[1].y, runs[2].y, runs[3].y);
      *(uint4*)(own + 2048) = make_uint4(runs[0].z, runs[1].z, runs[2].z, runs[3].z);
      *(uint4*)(own + 3072) = make_uint4(runs[0].w, runs[1].w, runs[2].w, runs[3].w);
    }
    fence_proxy_async();
    __syncwarp();
    pipeline.consumer_release(pipeline.stage);
    if (lane == 0) transposed.producer_commit();
  }
}

// A thread's two channels are in piece `piece_of` of the 8 pieces of a pixel (boxes of 32 channels,
// 16 per warp). Half a warp reads two pieces of four pixels, kXWidth pixels apart, at once: there
// is no bank conflict if the pieces differ in the lowest bit and the pixels in the two bits above,
// or the pieces in the highest bit and the pixels in the two below.
__device__ inline int piece_of(int warp, int quarter) {
  if (kXRun % 2 == 0) return warp % 2 * 4 + quarter;
  return warp % 2 * 2 + quarter / 2 + quarter % 2 * 4;
}
// The thread's first channel of the warpgroup's 64.
__device__ inline int channel_of(int thread) {
  const int warp = thread / 32, lane = thread % 32;
  return warp / 2 * 32 + piece_of(warp, lane / 8) * 4 + lane / 4 % 2 * 2;
}

// Loads the channels of both runs of a pixel; `at` is the unswizzled offset of the first in the
// stage.
__device__ inline void load_pixel(const uint8* stage, int at, uint32 (&x)[4]) {
  const auto load = [&](int offset) {
    return *(const uint2*)(stage + (offset ^ (offset >> 3 & 0x70)));
  };
  const uint2 first = load(at), second = load(at + kXFour * 128);
  x[0] = first.x;
  x[1] = first.y;
  x[2] = second.x;
  x[3] = second.y;
}

typedef Mma::Fragment Accums[kTapsAcross];

// K steps whose wgmma may be in flight while the thread continues. Three warpgroups alternate on
// the tensor cores and need none: a step takes 96 clocks or more, and the other two fill the gap.
// Nor have they registers for more pixels: the compiler would serialise all wgmma.
static const int kPending = kConsumers > 2 ? 0 : 1;

// All stages of a work tile. The registers of a pixel are free when its last wgmma is complete.
__device__ inline void mma_stages(const WorkTile& work, StagePipeline& pipeline,
                                  TransposedPipeline& transposed, int at, Accums& accum) {
  const int kPixels = kSteps + kTapsAcross - 1;
  const int kAhead = kTapsAcross;  // pixels that are loaded while the wgmma of a step run
  int before = -1;
  for (int i = 0; i < work.count; ++i, pipeline.next(), transposed.next()) {
    const uint8* stage = pipeline.buffer();
    const uint64 dy = smem_descriptor<128>(transposed.buffer(), 0, 1024);
    uint32 x[kPixels][4];
    pipeline.consumer_wait();
#pragma unroll
    for (int pixel = 0; pixel < kAhead && pixel < kPixels; ++pixel)
      load_pixel(stage, at + pixel * kStepPixels * 128, x[pixel]);
    transposed.consumer_wait();
    fence_operand(accum);
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
      wgmma_fence();
#pragma unroll
      for (int tap = 0; tap < kTapsAcross; ++tap)
        Mma::multiply(accum[tap], x[step + tap],
                      advance_descriptor(dy, step / 4 * kStepsBytes + step % 4 * 32),
                      i > 0 || step > 0);
      wgmma_commit_group();
      if (step + kAhead < kPixels)
        load_pixel(stage, at + (step + kAhead) * kStepPixels * 128, x[step + kAhead]);
      wgmma_wait_group<kPending>();
      if (step == 0 && before >= 0) transposed.consumer_release(before);
    }
    fence_operand(accum);
    __syncwarp();
    pipeline.consumer_release(pipeline.stage);
    before = transposed.stage;
  }
  wgmma_wait_group<0>();
  fence_operand(accum);
  if (before >= 0) transposed.consumer_release(before);
  if (work.count == 0) clear(accum);
}

// Stores the accumulators of 64 channels to [split][filter][tap][channel]: a thread has two
// channels of a filter. Zero-fills the slots that the tile does not use.
__device__ inline void store_partials(const Args& args, const WorkTile& work, int split,
                                      int channel, int tap_row, const Accums& accum) {
  const int tap_h = work.tap_h + tap_row, c = work.c + channel;
  const bool is_zero = kBlocks > 0 && split > work.split;
  if (tap_h >= kWindowH) return;
#pragma unroll
  for (int column = 0; column < Mma::kN / 4; ++column) {
    const int pair = column / 2, own_column = pair * 8 + threadIdx.x % 4 * 2 + column % 2;
    const int k = work.k + own_column / 64 * 64 + filter_of(own_column % 64);
    const int filter = work.group * (int)args.filters + k;
    const int own = kGroupsPerTile > 1 ? c - k / kGroupFilters * kGroupChannels : c;
    if (k >= (int)args.filters || filter >= (int)args.all_filters || own < 0 ||
        own >= kGroupChannels)
      continue;
    const int64 row = (int64)split * (int)args.all_filters + filter;
#pragma unroll
    for (int across = 0; across < kTapsAcross; ++across) {
      int tap = (work.tap_d * kWindowH + tap_h) * kWindowW + work.tap_w + across;
      if (work.tap_w + across >= kWindowW) continue;
      if constexpr (kFlip) tap = kWindowD * kWindowH * kWindowW - 1 - tap;
      float* to = (float*)args.partial +
                  (row * (kWindowD * kWindowH * kWindowW) + tap) * (int64)kGroupChannels + own;
      store_pair(to, own, is_zero ? 0 : accum[across][4 * pair + column % 2],
                 is_zero ? 0 : accum[across][4 * pair + 2 + column % 2]);
    }
  }
}

// A consumer warpgroup: a box of 64 channels, a row of taps.
__device__ inline void consume(const Args& args, const WorkTile& work, StagePipeline& pipeline,
                               TransposedPipeline& transposed, int group) {
  const int box = group / kTapRows, tap_row = group % kTapRows;
  const int lane = threadIdx.x % 32, channel = channel_of(threadIdx.x % 128);
  const int pixel = lane % 4 * kXRun + tap_row * kDilationH * kXWidth;
  Accums accum;
  mma_stages(work, pipeline, transposed,
             (2 * box + channel / 32) * kXBoxBytes + pixel * 128 + channel % 32 * 4, accum);
  const int end = kBlocks > 0 ? work.end_split : work.split + 1;
#pragma unroll 1
  for (int split = work.split; split < end; ++split)
    store_partials(args, work, split, box * 64 + channel, tap_row, accum);
}

extern "C" __global__ void __launch_bounds__(kThreads, 1)
    wgrad(const __grid_constant__ Args args) {
  StagePipeline pipeline;
  TransposedPipeline transposed;
  uint8 *stages = aligned_shared_memory(), *slots = stages + kStages * kStageBytes;
  pipeline.begin(stages, (Mbarrier*)(slots + kTransposedSlots * kTransposedBytes));
  transposed.begin(slots, pipeline.empty + kStages);
  if (threadIdx.x == 0) {
    pipeline.init(1, 4 * kConsumers + kTransposeWarps);
    transposed.init(kTransposeWarps, 4 * kConsumers);
    fence_barriers();
  }
  __syncthreads();
  run_warpgroups(
      args,
      [&](const WorkTile& own) {
        const int warp = threadIdx.x / 32 % 4;
        if (warp < kTransposeWarps)
          for_work(args, own,
                   [&](const WorkTile& work) { transpose_dy(work, pipeline, transposed, warp); });
        else if (threadIdx.x % 32 == 0)
          for_work(args, own, [&](const WorkTile& work) { produce(args, work, pipeline); });
      },
      [&](const WorkTile& work, int group) { consume(args, work, pipeline, transposed, group); });
}
