// Wgrad of f32 by splitting every operand into kParts bf16 terms of 8 bits (bf16x2, bf16x3
// emulation). TMA fills raw f32 slots; the consumer warps split them into the bf16 parts of the
// next stage while the tensor cores work on the previous one. Two parts are more accurate than tf32
// and their three products take 3 / 2 of its time, but wgmma supports M/N-major operands for bf16
// and not for tf32. Three parts and six products reach f32 accuracy. The generated header defines
// kDyPieceRows, kXPieceRows (rows of a segment per slot; the last slot has fewer) and kRawSlots.
#include "lib/ptx_convert.cuh"

static const int kSplitWarps = 4 * kConsumers;  // warps
static const int kDyPieceBytes = kDyPieceRows * kDyWidth * 256;
static const int kXPieceBytes = kXPieceRows * kXWidth * 256;
static const int kRawBytes = kDyPieceBytes > kXPieceBytes ? kDyPieceBytes : kXPieceBytes;
typedef BufferPipeline<kRawSlots, kRawBytes> RawPipeline;

// Visits all slots of a stage in load order: use(is_dy, segment, box, row).
template <class Use>
__device__ inline void for_pieces(Use use) {
#pragma unroll 1
  for (int s = 0; s < kSegments; ++s) {
#pragma unroll 1
    for (int i = 0; i < kDyBoxes * ((kRows + kDyPieceRows - 1) / kDyPieceRows); ++i)
      use(true, s, i % kDyBoxes, i / kDyBoxes * kDyPieceRows);
#pragma unroll 1
    for (int i = 0; i < kXBoxes * ((kXRows + kXPieceRows - 1) / kXPieceRows); ++i)
      use(false, s, i % kXBoxes, i / kXBoxes * kXPieceRows);
  }
}

// The TMA producer, one thread. `raw` is the pipeline of f32 slots.
__device__ inline void produce(const Args& args, const WorkTile& work, RawPipeline& raw) {
  SegmentCoord coord(args, work.first * kSegments);
  int current = 0;  // segment of the stage at which `coord` is
  for (int i = 0; i < work.count; ++i) {
    for_pieces([&](bool is_dy, int segment, int box, int row) {
      if (segment != current) coord.advance(args);
      current = segment;
      uint8* to = raw.buffer();
      Mbarrier* full = raw.producer_acquire(is_dy ? kDyPieceBytes : kXPieceBytes);
      if (is_dy)
        load_dy(args, work, coord, box * 64, row, to, full);
      else
        load_x(args, work, coord, box * 64, row, to, full);
      raw.next();
    });
    coord.advance(args);
    current = 0;
  }
}

// Splits two floats into kParts bf16x2 words: each term is the upper 16 bits of the remainder.
__device__ inline void split_pair(float a, float b, uint32 (&parts)[kParts]) {
#pragma unroll
  for (int part = 0; part + 1 < kParts; ++part) {
    const uint32 ua = __float_as_uint(a) & 0xffff0000, ub = __float_as_uint(b) & 0xffff0000;
    parts[part] = ua >> 16 | ub;
    a -= __uint_as_float(ua);
    b -= __uint_as_float(ub);
  }
  parts[kParts - 1] = pair_to_bf16(a, b);
}

// Splits `pixels` f32 pixels (256 bytes) into pixels `first` and on of a box (128 bytes per part).
// A warp processes 8 pixels at a time, two per access, each lane 4 channels, so the swizzle of a
// lane's four pixels is the same in every iteration.
__device__ inline void split_piece(const uint8* raw, uint8* box, int first, int pixels, int warp) {
  const int lane = threadIdx.x % 32, row = lane / 16, piece = lane % 16;
  uint8* to[4];
#pragma unroll
  for (int j = 0; j < 4; ++j) {
    const int pixel = first + 2 * j + row;
    to[j] = box + pixel * 128 + ((piece / 2) ^ (pixel & 7)) * 16 + piece % 2 * 8;
  }
  const uint8* from = raw + row * 256 + piece * 16;
#pragma unroll 1
  for (int at = warp * 8; at < pixels; at += kSplitWarps * 8) {
    float4 numbers[4];
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      numbers[j] = make_float4(0, 0, 0, 0);
      if (at + 2 * j + row < pixels) numbers[j] = *(const float4*)(from + at * 256 + j * 512);
    }
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      uint32 low[kParts], high[kParts];
      split_pair(numbers[j].x, numbers[j].y, low);
      split_pair(numbers[j].z, numbers[j].w, high);
      if (at + 2 * j + row < pixels) {
#pragma unroll
        for (int part = 0; part < kParts; ++part)
          *(uint2*)(to[j] + at * 128 + part * kPartBytes) = make_uint2(low[part], high[part]);
      }
    }
  }
}

// A warp's share of the next stage.
__device__ inline void fill_stage(StagePipeline& pipeline, RawPipeline& raw, int warp) {
  uint8 *dy = pipeline.buffer(), *x = dy + kDyBoxes * kDyBoxBytes;
  pipeline.producer_acquire();
  for_pieces([&](bool is_dy, int segment, int box, int row) {
    const uint8* from = raw.buffer();
    raw.consumer_wait();
    if (is_dy)
      split_piece(from, dy + box * kDyBoxBytes, segment * kSegmentGroups * 8 + row * kDyWidth,
                  min(kDyPieceRows, kRows - row) * kDyWidth, warp);
    else
      split_piece(from, x + box * kXBoxBytes, segment * kXPitch + row * kXWidth,
                  min(kXPieceRows, kXRows - row) * kXWidth, warp);
    __syncwarp();
    raw.consumer_release(raw.stage);
    raw.next();
  });
  fence_proxy_async();
  __syncwarp();
  if (threadIdx.x % 32 == 0) pipeline.producer_commit();
  pipeline.next();
}

// All stages of a work tile; `pipeline` is at the next stage to read, `filled` at the next to fill.
// With kParts == 3 each stage has accumulators of its own, which are added with rounding to
// nearest: tensor cores truncate when they accumulate.
__device__ inline void mma_stages(const WorkTile& work, StagePipeline& pipeline, RawPipeline& raw,
                                  int first_box, int tap_row,
                                  Mma::Fragment (&totals)[kRowBlocks]) {
  const int warp = threadIdx.x / 32;
  StagePipeline filled = pipeline;
  if constexpr (kParts == 3) clear(totals);
  if (work.count > 0) fill_stage(filled, raw, warp);
  int before = -1;
  for (int i = 0; i < work.count; ++i, pipeline.next()) {
    const uint8* stage = pipeline.buffer();
    pipeline.consumer_wait();
    if constexpr (kParts == 3) {
      Mma::Fragment accum[kRowBlocks];
      fence_operand(accum);
      wgmma_fence();
      mma_stage(stage, first_box, tap_row, accum, false);
      wgmma_commit_group();
      fence_operand(accum);
      if (i + 1 < work.count) fill_stage(filled, raw, warp);
      wgmma_wait_group<0>();
      fence_operand(accum);
      pipeline.consumer_release(pipeline.stage);
#pragma unroll
      for (int r = 0; r < kRowBlocks; ++r)
#pragma unroll
        for (int j = 0; j < Mma::kN / 2; ++j) totals[r][j] += accum[r][j];
    } else {
      fence_operand(totals);
      wgmma_fence();
      mma_stage(stage, first_box, tap_row, totals, i > 0);
      wgmma_commit_group();
      fence_operand(totals);
      wgmma_wait_group<1>();
      if (before >= 0) pipeline.consumer_release(before);
      before = pipeline.stage;
      if (i + 1 < work.count) fill_stage(filled, raw, warp);
    }
  }
  wgmma_wait_group<0>();
  fence_operand(totals);
  if (before >= 0) pipeline.consumer_release(before);
  if (kParts < 3 && work.count == 0) clear(totals);
}

// A consumer warpgroup.
__device__ inline void consume(const Args& args, const WorkTile& work, StagePipeline& pipeline,
                               RawPipeline& raw, int group) {
  const int first_box = group / kTapRows * kRowBlocks, tap_row = group % kTapRows;
  Mma::Fragment accum[kRowBlocks];
  mma_stages(work, pipeline, raw, first_box, tap_row, accum);
  store_partials(args, work, first_box, tap_row, accum);
}

extern "C" __global__ void __launch_bounds__(kThreads, 1)
    wgrad(const __grid_constant__ Args args) {
  StagePipeline pipeline;
  RawPipeline raw;
  uint8 *stages = aligned_shared_memory(), *slots = stages + kStages * kStageBytes;
  pipeline.begin(stages, (Mbarrier*)(slots + kRawSlots * kRawBytes));
  raw.begin(slots, pipeline.empty + kStages);
  if (threadIdx.x == 0) {
    pipeline.init(kSplitWarps, 4 * kConsumers);
    raw.init(1, kSplitWarps);
    fence_barriers();
  }
  clear_rests(stages);
  __syncthreads();
  run_warpgroups(
      args,
      [&](const WorkTile& own) {
        if (threadIdx.x == kConsumers * 128)
          for_work(args, own, [&](const WorkTile& work) { produce(args, work, raw); });
      },
      [&](const WorkTile& work, int group) { consume(args, work, pipeline, raw, group); });
}
