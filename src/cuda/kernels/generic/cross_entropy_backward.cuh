// Cross-entropy, backward: dx = dloss * (exp(x - stats) - (1 - s) * [class == target] - s / C).
// With `mean`, pass 0 counts the rows that are not ignored. Pass 1: one thread per element.
__device__ inline void unit(const Args& args, int64 n) {
  if (args.pass == 0) {
    const int64 count = counted_rows(args);
    if (threadIdx.x == 0) *(int64*)args.count = count;
    return;
  }
  Index at[kRank], row[kRank];
  unflatten(n, args.x_dims, at);
  for (int axis = 0; axis < kRank; ++axis) row[axis] = at[axis];
  row[kRank - 1] = 0;
  const int64 target = integer_target(args, row);
  if (target == args.ignore_index) return put_dx(args, at, (R)0);
  if (target < 0 || target >= args.group_size)
    return put_dx(args, at, (R)infinity() - (R)infinity());
  R factor = kMean ? in_dloss(args, Origin<kRank>().at) : in_dloss(args, row);
  if constexpr (kMean) factor /= (R)*(const int64*)args.count;
  R value = exp(in_x(args, at) - in_stats(args, row));
  if (at[kRank - 1] == target) value -= (R)1 - (R)args.smoothing;
  if constexpr (kSmooths) value -= (R)(args.smoothing / (double)args.group_size);
  put_dx(args, at, value * factor);
}
