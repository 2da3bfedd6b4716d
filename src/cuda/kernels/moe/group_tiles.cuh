// Cuts the rows of every group into tiles of kTileM rows, for sm90/schedule_groups.cuh: one block.
// Comes after a kernel's head and generic/moe_routing.cuh. args.row_tiles gets fours of numbers:
// how many tiles there are, then (first row, end, expert) for each of them; rows of nobody's are of
// expert -1. args.row_counts gets zeros, where kScatter.
#include "lib/elements.cuh"

static const int kThreads = 512;

// What `join` makes of the numbers of this thread and of all before it.
template <class Join>
__device__ inline int scan_threads(int number, Join join) {
  __shared__ int numbers[kThreads];
  const int thread = (int)threadIdx.x;
  for (int step = 1; step < kThreads; step *= 2) {
    numbers[thread] = number;
    __syncthreads();
    if (thread >= step) number = join(number, numbers[thread - step]);
    __syncthreads();
  }
  return number;
}
// The same of all threads, handed out by the last one.
__device__ inline int last_of_block(int number) {
  __shared__ int last;
  if (threadIdx.x == kThreads - 1) last = number;
  __syncthreads();
  const int result = last;
  __syncthreads();
  return result;
}

extern "C" __global__ void __launch_bounds__(kThreads)
    group_tiles(const __grid_constant__ Args args) {
  uint4* table = (uint4*)args.row_tiles;
  const int thread = (int)threadIdx.x, all = (int)rows(args);
  const int groups = (int)args.first_token_offset_dims[0];
  const auto offset = [&](int group) {
    return (int)within(integer_first_token_offset(args, {(Index)group, 0, 0}), 0, all);
  };
  const auto put = [&](int tile, int begin, int end, int expert) {
    for (int first = begin; first < end; first += kTileM, ++tile)
      table[tile + 1] = make_uint4(first, min(first + kTileM, end), expert, 0);
  };
  if (kScatter)
    for (int row = thread; row < (int)args.output_rows; row += kThreads)
      ((int*)args.row_counts)[row] = 0;

  // Offsets only rise: a group begins at the largest so far.
  const int nobodys = groups > 0 ? offset(0) : 0;
  if (thread == 0) put(0, 0, nobodys, -1);
  int tiles = (nobodys + kTileM - 1) / kTileM, largest = 0;
  for (int first = 0; first < groups; first += kThreads) {
    const int group = first + thread;
    const int own = group < groups ? offset(group) : 0;
    const int begin = max(largest, scan_threads(own, [](int x, int y) { return max(x, y); }));
    const int end = group >= groups       ? begin
                    : group + 1 == groups ? all
                                          : max(begin, offset(group + 1));
    const int count = (end - begin + kTileM - 1) / kTileM;
    const int after = tiles + scan_threads(count, [](int x, int y) { return x + y; });
    put(after - count, begin, end, group % (int)args.experts);
    largest = last_of_block(begin);
    tiles = last_of_block(after);
  }
  if (thread == 0) table[0] = make_uint4(tiles, 0, 0, 0);
}
