// Wgrad of 16-bit types: TMA fills the stages, wgmma reads them unchanged.

// The TMA producer, one thread.
__device__ inline void produce(const Args& args, const WorkTile& work, StagePipeline& pipeline) {
  const int kPixels = kDyBoxes * kRows * kDyWidth + kXBoxes * kXRows * kXWidth;
  SegmentCoord coord(args, work.first * kSegments);
  for (int i = 0; i < work.count; ++i, pipeline.next()) {
    Mbarrier* full = pipeline.producer_acquire(kSegments * kPixels * 128);
    uint8 *dy = pipeline.buffer(), *x = dy + kDyBoxes * kDyBoxBytes;
#pragma unroll 1
    for (int s = 0; s < kSegments; ++s, coord.advance(args)) {
#pragma unroll
      for (int box = 0; box < kDyBoxes; ++box)
        load_dy(args, work, coord, box * 64, 0, dy + box * kDyBoxBytes + s * kSegmentGroups * 1024,
                full);
#pragma unroll
      for (int box = 0; box < kXBoxes; ++box)
        load_x(args, work, coord, box * 64, 0, x + box * kXBoxBytes + s * kXPitch * 128, full);
    }
  }
}

// All stages of a work tile. A stage is released after the wgmma of the next stage have been
// issued.
__device__ inline void mma_stages(const WorkTile& work, StagePipeline& pipeline, int first_box,
                                  int tap_row, Mma::Fragment (&accum)[kRowBlocks]) {
  int before = -1;
  for (int i = 0; i < work.count; ++i, pipeline.next()) {
    pipeline.consumer_wait();
    fence_operand(accum);
    wgmma_fence();
    mma_stage(pipeline.buffer(), first_box, tap_row, accum, i > 0);
    wgmma_commit_group();
    fence_operand(accum);
    wgmma_wait_group<1>();
    if (before >= 0) pipeline.consumer_release(before);
    before = pipeline.stage;
  }
  wgmma_wait_group<0>();
  fence_operand(accum);
  if (before >= 0) pipeline.consumer_release(before);
  if (work.count == 0) clear(accum);
}

// A consumer warpgroup.
__device__ inline void consume(const Args& args, const WorkTile& work, StagePipeline& pipeline,
                               int group) {
  const int first_box = group / kTapRows * kRowBlocks, tap_row = group % kTapRows;
  Mma::Fragment accum[kRowBlocks];
  mma_stages(work, pipeline, first_box, tap_row, accum);
  store_partials(args, work, first_box, tap_row, accum);
}

extern "C" __global__ void __launch_bounds__(kThreads, 1)
    wgrad(const __grid_constant__ Args args) {
  StagePipeline pipeline;
  uint8* stages = aligned_shared_memory();
  pipeline.begin(stages, (Mbarrier*)(stages + kStages * kStageBytes));
  if (threadIdx.x == 0) {
    pipeline.init(1, 4 * kConsumers);
    fence_barriers();
  }
  clear_rests(stages);
  __syncthreads();
  run_warpgroups(
      args,
      [&](const WorkTile& own) {
        if (threadIdx.x == kConsumers * 128)
          for_work(args, own, [&](const WorkTile& work) { produce(args, work, pipeline); });
      },
      [&](const WorkTile& work, int group) { consume(args, work, pipeline, group); });
}
