// Gather and scatter of rows for the grouped GEMM of sm90/mainloop.cuh. Requires
// lib/epilogue_rows.cuh, sm90/tile_scheduler_moe.cuh, generic/moe_routing.cuh and the generated
// header, which, where rows are gathered, defines token_at<kCount>(args, at, values), a program
// over (1, token, k).

// Operand A of sm90/prologue_operands.cuh.
template <int kCount>
__device__ inline void operand_a(const Args& args, const Index (&at)[3], R (&values)[kCount]) {
  const Index token = source(args, at[1]);
  token_at<kCount>(args, {0, max(token, (Index)0), at[2]}, values);
#pragma unroll
  for (int i = 0; i < kCount; ++i) values[i] = token < 0 ? (R)0 : values[i];
}

// Gather: rows without a token are 0, although 0 times a weight of NaN is NaN. Scatter: skips rows
// without an expert and output rows to which several rows are routed, which moe/other_rows.cuh
// computes.
template <int kHalf, class Accum, class Tails>
__device__ inline void epilogue_tile_rows(const Args& args, const WorkTile& work, uint8* staging,
                                          Accum (&accum)[kHalf], int row, Tails& tails) {
  if constexpr (kGather) {
    const int first = row + (int)threadIdx.x % 32 / 4;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int own = first + 8 * half;
      const bool is_missing = own < work.row_end && source(args, (Index)own) < 0;
#pragma unroll
      for (int i = 0; i < kHalf; ++i)
        if (i / 2 % 2 == half && is_missing) accum[i] = 0;
    }
  }
  const auto place = [&](Index from, Index(&at)[kRank]) {
    const Index to = destination(args, from, (Index)args.output_rows);
    if (kScatter && (to < 0 || !work.has_expert || ((const int*)args.row_counts)[to] != 1))
      at[0] = -1;
    else
      locate_row(args, to, at);
  };
  finish_rows<2 * kHalf, kVector, kScatter>(args, staging, accum, (Index)row, (Index)work.row_end,
                                            (Index)work.n, (Index)args.columns, place, tails);
}
