// Local norms, backward. Pass 0 stores the divisors s, pass 1 computes the gradients.
__device__ inline R share(const Args& args, const Index (&at)[kRank], R divisor_at) {  // g / slope
  return in_dy(args, at) * in_x(args, at) * pow(divisor_at, (R)(-args.beta - 1));
}
__device__ inline void unit(const Args& args, int64 n) {
  Index at[kRank], other[kRank];
  unflatten(n, args.x_dims, at);
  R* divisors = (R*)args.divisors;
  if (args.pass == 0) {
    divisors[n] = divisor(args, at);
    return;
  }
  const R slope = (R)(2 * args.beta) * (R)args.factor, x = in_x(args, at);
  R through_windows = 0;
  const Box<kRank> centres = around(args, at, args.above, args.below);
  for (bool more = centres.start(other); more; more = centres.next(other))
    through_windows += share(args, other, divisors[flatten(args.x_dims, other)]) *
                       (x - mean_at(args, other));
  put_dx(args, at, in_dy(args, at) * pow(divisors[n], (R)-args.beta) - slope * through_windows);
  if constexpr (kHas_dmeans) {
    const R mean = mean_at(args, at);
    R deviations = 0;
    const Box<kRank> window = around(args, at, args.below, args.above);
    for (bool more = window.start(other); more; more = window.next(other))
      deviations += in_x(args, other) - mean;
    put_dmeans(args, at, slope * share(args, at, divisors[n]) * deviations);
  }
}
