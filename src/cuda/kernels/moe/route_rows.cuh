// Resolves the routing of every K-block: args.routes gets the row in token and the row in the
// output, -1 where there is none. A block with such rows is marked as not full. Requires the
// generated header and generic/moe_routing.cuh; one warp per entry of args.row_blocks.
#include "lib/elements.cuh"

static const int kThreads = 128;

extern "C" __global__ void __launch_bounds__(kThreads)
    route_rows(const __grid_constant__ Args args) {
  uint4* blocks = (uint4*)args.row_blocks;
  const int lane = threadIdx.x % 32, count = ((const int*)args.expert_blocks)[args.experts];
  for (int block = ((int)blockIdx.x * kThreads + (int)threadIdx.x) / 32; block < count;
       block += (int)gridDim.x * kThreads / 32) {
    const uint4 of_block = blocks[block];
    bool all_count = true;
    for (int row = (int)of_block.x + lane; row < (int)of_block.y; row += 32) {
      const int from = (int)source(args, row);
      const int to = (int)destination(args, row, (Index)args.output_rows);
      const bool counts = from >= 0 && to >= 0;
      ((uint2*)args.routes)[row] = counts ? make_uint2(from, to) : make_uint2(~0u, ~0u);
      all_count = all_count && counts;
    }
    all_count = __all_sync(~0u, all_count);
    if (lane == 0 && !all_count) blocks[block].z = 0;
  }
}
