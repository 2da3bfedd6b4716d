// Epilogue that stores f32 accumulators row by row to args.row_sums for moe/add_rows.cuh. Requires
// the generated header; precedes lib/epilogue_rows.cuh.
#include "lib/rows.cuh"

template <int kCount>
__device__ inline void epilogue(const Args& args, const Index (&at)[2], const R (&sums)[kCount],
                                const Held<kCount>&) {
  store_row(f32(), (void*)args.row_sums, (int64)at[0] * args.columns + at[1], sums);
}
