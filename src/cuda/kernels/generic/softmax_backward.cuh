// Softmax, backward: dx = y * (dy - sum(y * dy)); log-softmax: dx = dy - exp(y) * sum(dy). One CTA
// per line.
__device__ inline void unit(const Args& args, int64 n) {
  Index index[kRank];
  unflatten(n, args.lines, index);
  R sum = 0;
  for_each_in(args.group, args.group_size, index, [&](const Index (&at)[kRank]) {
    sum += kLog ? in_dy(args, at) : in_y(args, at) * in_dy(args, at);
  });
  sum = block_sum(sum);
  for_each_in(args.group, args.group_size, index, [&](const Index (&at)[kRank]) {
    const R y = in_y(args, at), dy = in_dy(args, at);
    put_dx(args, at, kLog ? dy - exp(y) * sum : y * (dy - sum));
  });
}
