// Residual prefetch: tensors that the epilogue reads element by element are requested while the
// mainloop runs, so that they are in L2, in epilogue staging buffers, or in pipeline stages when
// the accumulators are complete. The generated header defines
//   kResidualLines, kResidualLineColumns
//                              128-byte lines per row of the tile (0: no tensor is as large as the
//                               result) and columns of each
//   prefetch_residual_lines(args, at)  prefetches the lines at `at` to L2
//   kResidualStages             pipeline stages that TMA fills with the rows of one residual tensor
//                               after the K-blocks of a tile; 0: none
//   kResidualBoxes, kResidualBoxColumns
//                               128-byte boxes of each row per stage, and columns of a box
//   args.map_residual           (column, row) of that tensor: boxes of 64 rows, swizzled
// Requires lib/epilogue_rows.cuh or lib/epilogue_tma_store.cuh, and bounds_of and place_row of a
// loader.

// Ping-pong warpgroups prefetch before they wait on the order barrier. Cooperative ones prefetch
// before their first wgmma, or, where they must first wait for staging buffers, while it runs.
static const bool kPrefetchesDuringMma = kPrefetchesResidual && !kPingPong;

// For the rows of a warpgroup from `first_row` of the tile on; `staging` is the warp's buffer.
// Called at both points; kDuringMma selects the one that acts.
template <bool kDuringMma, class A>
__device__ inline void prefetch_residual(const A& args, const WorkTile& work, int first_row,
                                         uint8* staging) {
  if constexpr (kResidualLines > 0 && kDuringMma == kPrefetchesDuringMma) {
    const auto bounds = bounds_of(args, work);
    const Index first = bounds.first_row + work.m + first_row;
    const auto place = [&](Index row, Index(&at)[kRank]) { place_row(args, work, row, at); };
    prefetch_residual_boxes<kTileN>(args, staging, first + (Index)threadIdx.x / 32 % 4 * 16,
                                    bounds.row_end, bounds.first_column, bounds.column_end, place);
#pragma unroll 1
    for (int i = threadIdx.x % 128; i < kRowBlocks * 64 * kResidualLines; i += 128) {
      const Index row = first + i / kResidualLines;
      Index at[kRank];
      at[kRank - 1] = bounds.first_column + i % kResidualLines * kResidualLineColumns;
      if (row >= bounds.row_end || at[kRank - 1] >= bounds.column_end) continue;
      place(row, at);
      if (at[0] >= 0) prefetch_residual_lines(args, at);
    }
  }
}

// A residual stage holds 64 rows x 128 bytes at a time: all row blocks of the tile for the first
// box of columns, then for the next; first in the A part of the stage, then in the B part.
static const int kResidualBoxBytes = 64 * 128, kResidualRowBlocks = kTileM / 64;
__device__ inline uint8* residual_rows(uint8* a, uint8* b, int number) {
  const int of_a = kStageBytesA / kResidualBoxBytes;
  return number < of_a ? a + number * kResidualBoxBytes : b + (number - of_a) * kResidualBoxBytes;
}
// L2 prefetch of the residual by the TMA thread: it spreads the prefetches of 64-row boxes evenly
// over the K-blocks of the tile, and loads the boxes after the last K-block. Otherwise all CTAs,
// which end their tiles at about the same time, would wait on DRAM.
static const int kResidualBoxesOfTile = kTileN / kResidualBoxColumns * kResidualRowBlocks;
struct ResidualL2Prefetch {
  int count = 0;

  // Call with K-block `number` of the tile.
  template <class A>
  __device__ void block(const A& args, const WorkTile& work, int number) {
    // Skips the first K-blocks, which the start of a launch waits for, and stops before the last.
    const int step = work.count / (kResidualBoxesOfTile + 2);
    if (count == kResidualBoxesOfTile || number < (count + 1) * step) return;
    const auto bounds = bounds_of(args, work);
    prefetch_box<2>(args.map_residual,
                    {(int)bounds.first_column + count / kResidualRowBlocks * kResidualBoxColumns,
                     (int)bounds.first_row + work.m + count % kResidualRowBlocks * 64});
    ++count;
  }
};
// TMA loads of residual stage `part`.
template <class A>
__device__ inline void load_residual(const A& args, const WorkTile& work, int part, uint8* a,
                                       uint8* b, Mbarrier* full) {
  const auto bounds = bounds_of(args, work);
  const int first = part * kResidualBoxes * kResidualRowBlocks;
  const int count = min(kResidualBoxes * kResidualRowBlocks, kResidualBoxesOfTile - first);
  arrive_and_expect_tx(full, count * kResidualBoxBytes);
#pragma unroll 1
  for (int i = 0; i < count; ++i)
    load_box<2>(residual_rows(a, b, i), args.map_residual, full,
                {(int)bounds.first_column + (first + i) / kResidualRowBlocks * kResidualBoxColumns,
                 (int)bounds.first_row + work.m + i % kResidualRowBlocks * 64});
}

// Where in the pipeline the residual of a warp's 16 rows is.
template <class StagePipeline>
struct ResidualRows {
  const StagePipeline& pipeline;  // at the first residual stage of the tile
  int row_block;     // of the tile
  bool is_last;      // last row block of the warp

  __device__ int stage_of(int box) const {
    const int stage = pipeline.stage + box / kResidualBoxes;
    return stage < kStages ? stage : stage - kStages;
  }
  __device__ const uint8* at(int box) const {
    const int stage = stage_of(box);
    return residual_rows(pipeline.a + stage * kStageBytesA, pipeline.b + stage * kStageBytesB,
                        box % kResidualBoxes * kResidualRowBlocks + row_block) +
           threadIdx.x / 32 % 4 * 16 * 128;
  }
  // Called by a whole warp after all lanes have read box `box`; releases the stage after its last
  // box.
  __device__ void has_read(int box) const {
    if (is_last &&
        (box % kResidualBoxes == kResidualBoxes - 1 || box == kTileN / kResidualBoxColumns - 1))
      pipeline.template consumer_release<kCluster>(stage_of(box));
  }
};
