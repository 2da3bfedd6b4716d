// Producer warpgroups that compute operand tiles: dequantised, scaled, or of a type or layout that
// TMA and wgmma do not support. Requires sm90/load_matrix.cuh, sm90/dequantize_rows.cuh,
// sm90/prologue_tiles.cuh and the generated header (args.rows, args.columns; with kHasKLengths the
// K extent of a batch is depth_of(args, {batch})).

__device__ inline int k_end(const Args& args, int batch) {
  if constexpr (!kHasKLengths) return (int)args.depth;
  const int64 given = depth_of(args, {(Index)batch});
  return (int)(given < 0 ? 0 : given < args.depth ? given : args.depth);
}

// Fills the stages of one producer warpgroup.
template <class A>
struct ProducerPrologue {
  typedef typename ConverterOf<NarrowA::kConverts, NarrowA, MathA, kTileM>::Type ConverterA;
  typedef typename ConverterOf<NarrowB::kConverts, NarrowB, MathB, kTileN>::Type ConverterB;
  ConverterA a;
  ConverterB b;

  __device__ ProducerPrologue(const A& args, uint8* memory, int group)
      : a(args, memory, group), b(args, memory + kProducers * ConverterA::kBytes, group) {}

  template <class Ready>
  __device__ void stage(const A& args, const WorkTile& work, int block, uint8* to_a, uint8* to_b,
                        Ready ready) {
    const int depth = first_k(args, block), end = k_end(args, work.batch);
    const auto ready_for_b = [&] {
      if constexpr (!kComputesA) ready();
    };
    if constexpr (NarrowA::kConverts)
      a.convert(args, work, block, to_a, ready);
    else if constexpr (kComputesA)
      compute_tile<OperandA, kTransposeA, kTileM>(args, to_a, work.batch, work.m, (int)args.rows,
                                                 depth, end, ready);
    if constexpr (NarrowB::kConverts)
      b.convert(args, work, block, to_b, ready_for_b);
    else if constexpr (kComputesB)
      compute_tile<OperandB, kTransposeB, kTileN>(args, to_b, work.batch, work.n, (int)args.columns,
                                                 depth, end, ready_for_b);
  }
};
