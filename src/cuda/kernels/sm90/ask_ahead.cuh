// What the epilogue reads of a tile beside its sums, asked for while the tile's products are made:
// when they are done it is in the L2 cache, or in boxes. Comes after a kernel's head, which has
//   kAheadLines, kAheadColumns  lines of 128 bytes of a row of the tile, 0 where nothing that is
//                               read is as large as the results, and columns of each
//   ahead(args, at)             asks for the lines at `at`, where there are any
// after lib/product_rows.cuh or lib/product_boxes.cuh, and after bounds_of and place_row of a
// loader.

// Where a warpgroup does so: before its turn, for which it waits anyway; without turns before its
// products, or, where it has to wait for boxes, while the first ones are made.
static const bool kAsksMeanwhile = kBringsFirst && !kPingPong;

// For the rows of a warpgroup from `first_row` of the tile on; `slab` is the warp's own. Called at
// both times, and does it at the right one.
template <bool kMeanwhile, class A>
__device__ inline void ask_ahead(const A& args, const Work& work, int first_row, uint8* slab) {
  if constexpr (kAheadLines > 0 && kMeanwhile == kAsksMeanwhile) {
    const auto bounds = bounds_of(args, work);
    const Index first = bounds.first_row + work.m + first_row;
    const auto place = [&](Index row, Index(&at)[kRank]) { place_row(args, work, row, at); };
    bring_first_boxes<kTileN>(args, slab, first + (Index)threadIdx.x / 32 % 4 * 16, bounds.row_end,
                              bounds.first_column, bounds.column_end, place);
#pragma unroll 1
    for (int i = threadIdx.x % 128; i < kRowBlocks * 64 * kAheadLines; i += 128) {
      const Index row = first + i / kAheadLines;
      Index at[kRank];
      at[kRank - 1] = bounds.first_column + i % kAheadLines * kAheadColumns;
      if (row >= bounds.row_end || at[kRank - 1] >= bounds.column_end) continue;
      place(row, at);
      if (at[0] >= 0) ahead(args, at);
    }
  }
}
