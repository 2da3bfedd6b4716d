// The results of batches of matrices. Comes after sm90/schedule.cuh and lib/product_rows.cuh.

// Rows are numbered through all batches, as the epilogue's axes number them.
template <class Sum>
__device__ inline void finish_tile_rows(const Args& args, const Work& work, uint8* slab,
                                        const Sum (&sums)[kTileN / 2], int row) {
  const Index batch = (Index)work.batch * (Index)args.rows;
  finish_rows<kTileN>(args, slab, sums, batch + row, batch + (Index)args.rows, (Index)work.n,
                      (Index)args.columns,
                      [&](Index r, Index(&at)[kRank]) { locate_row(args, r, at); });
}
