// Softmax, forward, one CTA per line: y = exp(x - max) / sum(exp(x - max)), or its logarithm.
__device__ inline void unit(const Args& args, int64 n) {
  Index index[kRank];
  unflatten(n, args.lines, index);
  R largest = -(R)infinity(), sum = 0;
  for_each_in(args.group, args.group_size, index, [&](const Index (&at)[kRank]) {
    largest = Max::apply(largest, in_x(args, at));
  });
  largest = block_maximum(largest);
  for_each_in(args.group, args.group_size, index,
              [&](const Index (&at)[kRank]) { sum += exp(in_x(args, at) - largest); });
  sum = block_sum(sum);
  for_each_in(args.group, args.group_size, index, [&](const Index (&at)[kRank]) {
    const R above = in_x(args, at) - largest;
    put_y(args, at, kLog ? above - log(sum) : exp(above) / sum);
  });
  if constexpr (kHas_stats)
    if (threadIdx.x == 0) put_stats(args, index, largest + log(sum));
}
