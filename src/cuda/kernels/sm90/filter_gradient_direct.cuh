// Numbers of 16 bits go to the matrix units as they are: copies fill the stages.

// One thread.
__device__ inline void produce(const Args& args, const Work& work, Ring& ring) {
  const int kPixels = kDyBoxes * kRows * kDyWidth + kXBoxes * kXRows * kXWidth;
  Place place(args, work.first * kSegments);
  for (int i = 0; i < work.count; ++i, ring.next(kStages)) {
    Mbarrier* full = ring.full + ring.stage;
    wait_for(ring.empty + ring.stage, ring.parity ^ 1);
    arrive_and_expect(full, kSegments * kPixels * 128);
    uint8 *dy = ring.stages + ring.stage * kStageBytes, *x = dy + kDyBoxes * kDyBoxBytes;
#pragma unroll 1
    for (int s = 0; s < kSegments; ++s, place.advance(args)) {
#pragma unroll
      for (int box = 0; box < kDyBoxes; ++box)
        load_dy(args, work, place, box * 64, 0, dy + box * kDyBoxBytes + s * kSegmentGroups * 1024,
                full);
#pragma unroll
      for (int box = 0; box < kXBoxes; ++box)
        load_x(args, work, place, box * 64, 0, x + box * kXBoxBytes + s * kXPitch * 128, full);
    }
  }
}

// All stages of a piece of work. A stage is given back when the products that follow have been
// started.
__device__ inline void sum_stages(const Work& work, Ring& ring, int first_box, int tap_row,
                                  Sum (&sums)[kRowBlocks][WGMMA_N / 2]) {
  int before = -1;
  for (int i = 0; i < work.count; ++i, ring.next(kStages)) {
    wait_for(ring.full + ring.stage, ring.parity);
    keep_in_registers(sums);
    fence_products();
    multiply_stage(ring.stages + ring.stage * kStageBytes, first_box, tap_row, sums, i > 0);
    commit_products();
    keep_in_registers(sums);
    wait_for_products<1>();
    if (before >= 0) release(ring, before);
    before = ring.stage;
  }
  wait_for_products<0>();
  keep_in_registers(sums);
  if (before >= 0) release(ring, before);
  if (work.count == 0) clear(sums);
}

// A warpgroup.
__device__ inline void consume(const Args& args, const Work& work, Ring& ring, int group) {
  const int first_box = group / kTapRows * kRowBlocks, tap_row = group % kTapRows;
  Sum sums[kRowBlocks][WGMMA_N / 2];
  sum_stages(work, ring, first_box, tap_row, sums);
  keep_sums(args, work, first_box, tap_row, sums);
}

extern "C" __global__ void __launch_bounds__(kThreads, 1)
    filter_gradient(const __grid_constant__ Args args) {
  Ring ring;
  ring.stages = aligned_shared_memory();
  ring.full = (Mbarrier*)(ring.stages + kStages * kStageBytes);
  ring.empty = ring.full + kStages;
  ring.stage = ring.parity = 0;
  if (threadIdx.x == 0) {
    for (int s = 0; s < kStages; ++s) {
      init_barrier(ring.full + s, 1);
      init_barrier(ring.empty + s, 4 * kConsumers);
    }
    fence_barriers();
  }
  clear_rests(ring.stages);
  __syncthreads();
  const Work own = own_work(args);
  const int group = threadIdx.x / 128;
  if (group == kConsumers) {
    if constexpr (kConsumers > 1) give_registers<kProducerRegisters>();
    if (threadIdx.x == kConsumers * 128)
      for_work(args, own, [&](const Work& work) { produce(args, work, ring); });
  } else {
    if constexpr (kConsumers > 1) take_registers<kConsumerRegisters>();
    for_work(args, own, [&](const Work& work) { consume(args, work, ring, group); });
  }
}
