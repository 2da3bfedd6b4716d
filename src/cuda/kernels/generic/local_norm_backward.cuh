// Pass 0 keeps all divisors, pass 1 uses them.
__device__ inline void unit(const Args& args, int64 n) {
  Index at[kRank], other[kRank];
  unflatten(n, args.x_dims, at);
  R* divisors = (R*)args.divisors;
  if (args.pass == 0) {
    divisors[n] = divisor(args, at);
    return;
  }
  R handed_back = 0;
  const Box<kRank> window = around(args, at, args.above, args.below);
  for (bool more = window.start(other); more; more = window.next(other))
    handed_back += in_dy(args, other) * in_x(args, other) *
                   pow(divisors[flatten(args.x_dims, other)], (R)(-args.beta - 1));
  const R through_window =
      (R)(2 * args.beta) * (R)args.factor * deviation(args, at) * handed_back;
  put_dx(args, at, in_dy(args, at) * pow(divisors[n], (R)-args.beta) - through_window);
  put_dmeans(args, at, through_window);
}
