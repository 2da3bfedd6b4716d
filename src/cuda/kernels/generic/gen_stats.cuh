// Sums of x and x^2: one CTA per channel.
__device__ inline void unit(const Args& args, int64 n) {
  Index channel[kRank];
  channel_position(n, channel);
  R sum = 0, squares = 0;
  for_each_in(args.group, args.group_size, channel, [&](const Index (&at)[kRank]) {
    const R value = in_x(args, at);
    sum += value;
    squares += value * value;
  });
  sum = block_sum(sum);
  squares = block_sum(squares);
  if (threadIdx.x != 0) return;
  put_sum(args, channel, sum);
  put_sq_sum(args, channel, squares);
}
