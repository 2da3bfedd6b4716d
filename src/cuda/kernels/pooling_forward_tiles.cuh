// Pooling, forward: entry point with a tile of results per thread.

extern "C" __global__ void __launch_bounds__(kThreads)
    pooling_forward(const __grid_constant__ Args args) {
  constexpr int kCount = kColumns ? kVector : 1;
  const Tile tile = Tile::of_thread<kCount>(args);
  if (!tile.exists) return;
  if constexpr (!kSegments)
    pool<kCount, false>(args, tile);
  else if (is_whole(args, tile))
    pool<1, true>(args, tile);
  else
    pool_one_by_one(args, tile);
}
