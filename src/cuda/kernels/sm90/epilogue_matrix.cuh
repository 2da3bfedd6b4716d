// Epilogue of batched matrices. Requires the generated header, sm90/tile_scheduler.cuh and
// lib/epilogue_rows.cuh. With kHasLengths the rows and columns of a batch end at rows_of(args,
// {batch}) and columns_of(args, {batch}); results past them are args.padding_value.

__device__ inline int length_within(int64 given, int64 extent) {
  return (int)(given < 0 ? 0 : given < extent ? given : extent);
}

// Rows are numbered through all batches, as in the epilogue's space.
struct Bounds {
  Index first_row, row_end, first_column, column_end;
};
__device__ inline Bounds bounds_of(const Args& args, const WorkTile& work) {
  const Index batch = (Index)work.batch * (Index)args.rows;
  return {batch, batch + (Index)args.rows, (Index)work.n, (Index)args.columns};
}
__device__ inline void place_row(const Args& args, const WorkTile&, Index row, Index (&at)[kRank]) {
  locate_row(args, row, at);
}

// Epilogue of 16 rows of accumulators; their first column is work.n.
template <int kHalf, class Accum, class Tails>
__device__ inline void epilogue_tile_rows(const Args& args, const WorkTile& work, uint8* staging,
                                        Accum (&accum)[kHalf], int row, Tails& tails) {
  if constexpr (kHasLengths) {
    const int rows = length_within(rows_of(args, {(Index)work.batch}), args.rows);
    const int columns = length_within(columns_of(args, {(Index)work.batch}), args.columns);
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int i = 0; i < kHalf; ++i) {
      const int r = row + lane / 4 + i / 2 % 2 * 8;
      const int column = work.n + i / 4 * 8 + lane % 4 * 2 + i % 2;
      if (r >= rows || column >= columns) accum[i] = (Accum)args.padding_value;
    }
  }
  const Bounds bounds = bounds_of(args, work);
  finish_rows<2 * kHalf>(args, staging, accum, bounds.first_row + row, bounds.row_end,
                         bounds.first_column, bounds.column_end,
                         [&](Index r, Index(&at)[kRank]) { place_row(args, work, r, at); }, tails);
}
