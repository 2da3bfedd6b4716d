// Wgrad of 16-bit types: TMA fills the stages, wgmma reads them unchanged.

// The TMA producer, one thread.
__device__ inline void produce(const Args& args, const WorkTile& work, Pipeline& pipeline) {
  const int kPixels = kDyBoxes * kRows * kDyWidth + kXBoxes * kXRows * kXWidth;
  SegmentCoord coord(args, work.first * kSegments);
  for (int i = 0; i < work.count; ++i, pipeline.next(kStages)) {
    Mbarrier* full = pipeline.full + pipeline.stage;
    wait_for(pipeline.empty + pipeline.stage, pipeline.parity ^ 1);
    arrive_and_expect_tx(full, kSegments * kPixels * 128);
    uint8 *dy = pipeline.stages + pipeline.stage * kStageBytes, *x = dy + kDyBoxes * kDyBoxBytes;
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
__device__ inline void mma_stages(const WorkTile& work, Pipeline& pipeline, int first_box,
                                  int tap_row, Accum (&accum)[kRowBlocks][WGMMA_N / 2]) {
  int before = -1;
  for (int i = 0; i < work.count; ++i, pipeline.next(kStages)) {
    wait_for(pipeline.full + pipeline.stage, pipeline.parity);
    fence_operand(accum);
    wgmma_fence();
    mma_stage(pipeline.stages + pipeline.stage * kStageBytes, first_box, tap_row, accum, i > 0);
    wgmma_commit_group();
    fence_operand(accum);
    wgmma_wait_group<1>();
    if (before >= 0) release(pipeline, before);
    before = pipeline.stage;
  }
  wgmma_wait_group<0>();
  fence_operand(accum);
  if (before >= 0) release(pipeline, before);
  if (work.count == 0) clear(accum);
}

// A consumer warpgroup.
__device__ inline void consume(const Args& args, const WorkTile& work, Pipeline& pipeline,
                               int group) {
  const int first_box = group / kTapRows * kRowBlocks, tap_row = group % kTapRows;
  Accum accum[kRowBlocks][WGMMA_N / 2];
  mma_stages(work, pipeline, first_box, tap_row, accum);
  store_partials(args, work, first_box, tap_row, accum);
}

extern "C" __global__ void __launch_bounds__(kThreads, 1)
    wgrad(const __grid_constant__ Args args) {
  Pipeline pipeline;
  pipeline.stages = aligned_shared_memory();
  pipeline.full = (Mbarrier*)(pipeline.stages + kStages * kStageBytes);
  pipeline.empty = pipeline.full + kStages;
  pipeline.stage = pipeline.parity = 0;
  if (threadIdx.x == 0) {
    for (int s = 0; s < kStages; ++s) {
      init_barrier(pipeline.full + s, 1);
      init_barrier(pipeline.empty + s, 4 * kConsumers);
    }
    fence_barriers();
  }
  clear_rests(pipeline.stages);
  __syncthreads();
  const WorkTile own = own_work(args);
  const int group = threadIdx.x / 128;
  if (group == kConsumers) {
    if constexpr (kConsumers > 1) setmaxnreg_dec<kProducerRegisters>();
    if (threadIdx.x == kConsumers * 128)
      for_work(args, own, [&](const WorkTile& work) { produce(args, work, pipeline); });
  } else {
    if constexpr (kConsumers > 1) setmaxnreg_inc<kConsumerRegisters>();
    for_work(args, own, [&](const WorkTile& work) { consume(args, work, pipeline, group); });
  }
}
