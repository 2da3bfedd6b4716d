// Cross-entropy, forward. Pass 0: one CTA per row; with `mean` it stores the loss for pass 1, in
// which one CTA adds the losses in a fixed order.
__device__ inline void row_loss(const Args& args, int64 row) {
  Index index[kRank];
  unflatten(row, args.lines, index);
  R largest = -(R)infinity(), sum = 0, logits = 0;
  for_each_in(args.group, args.group_size, index, [&](const Index (&at)[kRank]) {
    const R logit = in_x(args, at);
    largest = Max::apply(largest, logit);
    if constexpr (kSmooths) logits += logit;
  });
  largest = block_maximum(largest);
  for_each_in(args.group, args.group_size, index,
              [&](const Index (&at)[kRank]) { sum += exp(in_x(args, at) - largest); });
  sum = block_sum(sum);
  if constexpr (kSmooths) logits = block_sum(logits);
  if (threadIdx.x != 0) return;

  const R log_sum = log(sum);
  if constexpr (kHas_stats) put_stats(args, index, largest + log_sum);
  const int64 target = integer_target(args, index);
  R loss = 0;
  if (target != args.ignore_index) {
    loss = (R)infinity() - (R)infinity();
    if (target >= 0 && target < args.group_size) {
      Index at[kRank];
      for (int axis = 0; axis < kRank; ++axis) at[axis] = index[axis];
      at[kRank - 1] = target;
      loss = log_sum - (in_x(args, at) - largest);
      if constexpr (kSmooths) {
        const R smoothing = (R)args.smoothing, mean = logits / (R)args.group_size;
        loss = ((R)1 - smoothing) * loss + smoothing * (log_sum - (mean - largest));
      }
    }
  }
  if constexpr (kMean)
    ((R*)args.losses)[row] = loss;
  else
    put_loss(args, index, loss);
}

__device__ inline void mean_loss(const Args& args) {
  double sum = 0;
  for (int64 row = threadIdx.x; row < args.rows; row += kThreads)
    sum += (double)((const R*)args.losses)[row];
  sum = block_reduce<kThreads / kLanes, Sum>(sum);
  const int64 count = counted_rows(args);
  if (threadIdx.x == 0) put_loss(args, Origin<kRank>().at, (R)(sum / (double)count));
}

__device__ inline void unit(const Args& args, int64 n) {
  if (args.pass == 0)
    row_loss(args, n);
  else
    mean_loss(args);
}
