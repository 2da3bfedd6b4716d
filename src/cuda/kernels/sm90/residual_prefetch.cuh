// What the epilogue reads of a tile beside its sums, asked for while the tile's products are made:
// when they are done it is in the L2 cache, in boxes, or in stages of the ring. Comes after a
// kernel's head, which has
//   kResidualLines, kResidualLineColumns  lines of 128 bytes of a row of the tile, 0 where nothing that is
//                               read is as large as the results, and columns of each
//   ahead(args, at)             asks for the lines at `at`, where there are any
//   kResidualStages              of the ring, that the copy engine fills behind a tile's blocks of
//                               depth with the rows of one tensor, 0: none
//   kResidualBoxes, kResidualBoxColumns  boxes of 128 bytes that one of them has of each row, and the
//                               columns of such a box
//   args.map_residual            (column, row) of that tensor: 64 rows of a box, swizzled
// after lib/epilogue_rows.cuh or lib/epilogue_tma_store.cuh, and after bounds_of and place_row of a
// loader.

// Where a warpgroup does so: before its turn, for which it waits anyway; without turns before its
// products, or, where it has to wait for boxes, while the first ones are made.
static const bool kPrefetchesDuringMma = kPrefetchesResidual && !kPingPong;

// For the rows of a warpgroup from `first_row` of the tile on; `slab` is the warp's own. Called at
// both times, and does it at the right one.
template <bool kDuringMma, class A>
__device__ inline void prefetch_residual(const A& args, const WorkTile& work, int first_row, uint8* staging) {
  if constexpr (kResidualLines > 0 && kDuringMma == kPrefetchesDuringMma) {
    const auto bounds = bounds_of(args, work);
    const Index first = bounds.first_row + work.m + first_row;
    const auto place = [&](Index row, Index(&at)[kRank]) { place_row(args, work, row, at); };
    prefetch_residual_boxes<kTileN>(args, staging, first + (Index)threadIdx.x / 32 % 4 * 16, bounds.row_end,
                              bounds.first_column, bounds.column_end, place);
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

// A stage holds 64 rows of a box at a time: those of all row blocks of the tile for its first box,
// then for the next, from where its A is and on where its B is.
static const int kResidualBoxBytes = 64 * 128, kResidualRowBlocks = kTileM / 64;
__device__ inline uint8* residual_rows(uint8* a, uint8* b, int number) {
  const int of_a = kStageBytesA / kResidualBoxBytes;
  return number < of_a ? a + number * kResidualBoxBytes : b + (number - of_a) * kResidualBoxBytes;
}
// The thread that asks for a tile's stages says among them, evenly, what it will ask for behind
// them: 64 rows of a box at a time, which are in the L2 cache by then. All blocks end their tiles
// at about the same time, and memory would keep them waiting.
static const int kResidualBoxesOfTile = kTileN / kResidualBoxColumns * kResidualRowBlocks;
struct ResidualL2Prefetch {
  int count = 0;

  // With block of depth number `number` of the tile.
  template <class A>
  __device__ void block(const A& args, const WorkTile& work, int number) {
    // Not with the first ones, for which a launch that begins waits; and some before the last.
    const int step = work.count / (kResidualBoxesOfTile + 2);
    if (count == kResidualBoxesOfTile || number < (count + 1) * step) return;
    const auto bounds = bounds_of(args, work);
    prefetch_box<2>(args.map_residual,
                    {(int)bounds.first_column + count / kResidualRowBlocks * kResidualBoxColumns,
                     (int)bounds.first_row + work.m + count % kResidualRowBlocks * 64});
    ++count;
  }
};
// Stage `part` of them.
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

// Where in the ring what belongs to 16 rows of a warp was brought.
template <class Pipeline>
struct ResidualRows {
  const Pipeline& pipeline;  // at the first stage of the tile's
  int row_block;     // of the tile
  bool is_last;      // of the warp

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
  // By a whole warp, whose lanes all have read box number `box`.
  __device__ void has_read(int box) const {
    if (is_last &&
        (box % kResidualBoxes == kResidualBoxes - 1 || box == kTileN / kResidualBoxColumns - 1))
      release(pipeline, stage_of(box));
  }
};
