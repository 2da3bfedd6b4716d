// Splits the rows of every group into tiles of kTileM rows for sm90/tile_scheduler_moe.cuh, in one
// CTA. Requires the generated header, generic/moe_routing.cuh and moe/scan_groups.cuh. Writes uint4
// words to args.row_tiles: the number of tiles, then (first row, end, expert) of each; the expert
// is -1 for rows that belong to no group. With kScatter clears args.row_counts.
#include "lib/elements.cuh"

extern "C" __global__ void __launch_bounds__(kThreads)
    group_tiles(const __grid_constant__ Args args) {
  uint4* table = (uint4*)args.row_tiles;
  const int thread = (int)threadIdx.x, all = (int)rows(args);
  const int groups = (int)args.first_token_offset_dims[0];
  const auto put = [&](int tile, int begin, int end, int expert) {
    for (int first = begin; first < end; first += kTileM, ++tile)
      table[tile + 1] = make_uint4(first, min(first + kTileM, end), expert, 0);
  };
  if (kScatter)
    for (int row = thread; row < (int)args.output_rows; row += kThreads)
      ((int*)args.row_counts)[row] = 0;

  const int rows_without_expert = groups > 0 ? offset_of(args, 0, all) : 0;
  if (thread == 0) put(0, 0, rows_without_expert, -1);
  int tiles = (rows_without_expert + kTileM - 1) / kTileM, largest = 0;
  for (int first = 0; first < groups; first += kThreads) {
    const int group = first + thread, begin = begin_of_group(args, first, all, largest);
    const int end = group >= groups       ? begin
                    : group + 1 == groups ? all
                                          : max(begin, offset_of(args, group + 1, all));
    const int count = (end - begin + kTileM - 1) / kTileM;
    const int after = tiles + scan_threads(count, [](int x, int y) { return x + y; });
    put(after - count, begin, end, group % (int)args.experts);
    largest = last_of_block(begin);
    tiles = last_of_block(after);
  }
  if (thread == 0) table[0] = make_uint4(tiles, 0, 0, 0);
}
