// Producer warpgroups of moe/routed_operands.cuh. Requires sm90/prologue_tiles.cuh.

template <class A>
struct ProducerPrologue {
  __device__ ProducerPrologue(const A&, uint8*, int) {}

  template <class Ready>
  __device__ void stage(const A& args, const WorkTile& work, int block, uint8* to_a, uint8* to_b,
                        Ready ready) {
    const RowBlock rows = row_block(args, block);
    const bool computes_a = kComputesA || !rows.is_whole, computes_b = kComputesB || !rows.is_whole;
    if (computes_a)
      compute_tile<OperandA, kTransposeA, kTileM>(args, to_a, 0, work.m, (int)args.rows, rows.begin,
                                                 rows.end, [&] { ready(rows.is_whole); });
    if (computes_b)
      compute_tile<OperandB, kTransposeB, kTileN>(args, to_b, 0, work.n, (int)args.columns,
                                                 rows.begin, rows.end, [&] {
                                                   if (!computes_a) ready(rows.is_whole);
                                                 });
    if (!computes_a && !computes_b) ready();
  }
};
