// Where rows of groups come from and go to, for products of sm90/mainloop.cuh. Comes after a
// kernel's head, lib/epilogue_rows.cuh, sm90/tile_scheduler_moe.cuh and generic/moe_routing.cuh. The
// head has token_at<kCount>(args, at, values), a program over (1, token, depth), where rows are
// gathered.

// Factor A of sm90/prologue_operands.cuh.
template <int kCount>
__device__ inline void operand_a(const Args& args, const Index (&at)[3], R (&values)[kCount]) {
  const Index token = source(args, at[1]);
  token_at<kCount>(args, {0, max(token, (Index)0), at[2]}, values);
#pragma unroll
  for (int i = 0; i < kCount; ++i) values[i] = token < 0 ? (R)0 : values[i];
}

// Rows that are not alone in their place are the business of moe/other_rows.cuh, and rows of
// nobody's go nowhere but to themselves.
template <int kHalf, class Accum, class Tails>
__device__ inline void epilogue_tile_rows(const Args& args, const WorkTile& work, uint8* staging,
                                        const Accum (&accum)[kHalf], int row, Tails& tails) {
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
