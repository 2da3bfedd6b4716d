// What both directions of cross-entropy share: rows of logits over the last axis.

// Counts the rows that are not ignored. All threads of the CTA call it.
__device__ inline int64 counted_rows(const Args& args) {
  int64 count = 0;
  for (int64 row = threadIdx.x; row < args.rows; row += kThreads) {
    Index at[kRank];
    unflatten(row, args.lines, at);
    if (integer_target(args, at) != args.ignore_index) ++count;
  }
  return block_reduce<kThreads / kLanes, Sum>(count);
}
