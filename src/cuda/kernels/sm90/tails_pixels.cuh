// Where the reductions behind a convolution have the partial results of a tile. Comes after
// sm90/tile_scheduler_conv.cuh, sm90/load_im2col.cuh and lib/gemm_tails.cuh. args.tail_across: tiles
// side by side of all groups of channels. With kSwap there is one phase.

__device__ inline TailPlace tail_place(const Args& args, const WorkTile& work) {
  const Index channel = (Index)work.group * (Index)args.columns;
  Index channel_end = channel + (Index)args.columns;
  // The last groups side by side may be fewer.
  if constexpr (kGroupsPerTile > 0) channel_end = min(channel_end, (Index)args.all_columns);
  const int above =
      kPhases == 1 ? 0
                   : (int)(phase_word(args, work.phase, kFirstWork) / args.tail_across) * kCluster;
  return {0, (Index)(above + work.m / kTileM), (Index)(work.n / kTileN), channel + work.n,
          channel_end};
}
