// Where a tile of a convolution stores the partial results of tail reductions. Requires
// sm90/tile_scheduler_conv.cuh, sm90/load_im2col.cuh and lib/gemm_tails.cuh. args.tail_across:
// columns of tiles of all groups of channels. With kSwap there is one phase.

__device__ inline TailPlace tail_place(const Args& args, const WorkTile& work) {
  const Index channel = (Index)work.group * (Index)args.columns;
  Index channel_end = channel + (Index)args.columns;
  // The last pack may hold fewer groups.
  if constexpr (kGroupsPerTile > 0) channel_end = min(channel_end, (Index)args.all_columns);
  const int above =
      kPhases == 1 ? 0
                   : (int)(phase_word(args, work.phase, kFirstWork) / args.tail_across) * kCluster;
  return {0, (Index)(above + work.m / kTileM), (Index)(work.n / kTileN), channel + work.n,
          channel_end};
}
