// Splits the rows of every group into K-blocks of kBlockK rows for the weight gradient; the blocks
// of an expert are consecutive. One CTA. Requires the generated header, generic/moe_routing.cuh and
// moe/scan_groups.cuh. Writes
//   args.group_begins    begin of each group, and the end of the last one
//   args.expert_blocks   first K-block of each expert, and the end of the last one's
//   args.row_blocks      (first row, end, whether the block is full) of each K-block

extern "C" __global__ void __launch_bounds__(kThreads)
    k_blocks(const __grid_constant__ Args args) {
  int *begins = (int*)args.group_begins, *starts = (int*)args.expert_blocks;
  uint4* blocks = (uint4*)args.row_blocks;
  const int thread = (int)threadIdx.x, experts = (int)args.experts, all = (int)rows(args);
  const int groups = (int)args.first_token_offset_dims[0], of_expert = groups / experts;
  int largest = 0;
  for (int first = 0; first < groups; first += kThreads) {
    const int begin = begin_of_group(args, first, all, largest);
    if (first + thread < groups) begins[first + thread] = begin;
    largest = last_of_block(begin);
  }
  if (thread == 0) begins[groups] = all;
  __syncthreads();

  int before = 0;
  for (int first = 0; first < groups; first += kThreads) {
    const int number = first + thread, expert = number / of_expert;
    const int of_this = number - expert * of_expert, group = of_this * experts + expert;
    const int begin = number < groups ? begins[group] : 0;
    const int end = number < groups ? begins[group + 1] : 0;
    const int count = (end - begin + kBlockK - 1) / kBlockK;
    const int after = before + scan_threads(count, [](int x, int y) { return x + y; });
    if (number < groups && of_this == 0) starts[expert] = after - count;
    for (int i = 0; i < count; ++i) {
      const int row = begin + i * kBlockK, row_end = min(row + kBlockK, end);
      blocks[after - count + i] = make_uint4(row, row_end, row_end - row == kBlockK, 0);
    }
    before = last_of_block(after);
  }
  if (thread == 0) starts[experts] = before;
}
