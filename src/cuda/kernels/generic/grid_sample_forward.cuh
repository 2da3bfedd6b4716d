// Grid sampling, forward. Elements of weight 0 are not read, so that a NaN there does not spread.
__device__ inline void unit(const Args& args, int64 n) {
  Index at[kRank], in[kRank];
  unflatten(n, args.y_dims, at);
  GridPoint point;
  point.find(args, args.x_dims, at);
  if (point.is_nan()) return put_y(args, at, quiet_nan());
  R sum = 0;
  const Box<kRank> seen = point.seen(at[0], at[1]);
  for (bool more = seen.start(in); more; more = seen.next(in)) {
    const R weight = point.weight(in);
    if (weight != 0) sum += weight * in_x(args, in);
  }
  put_y(args, at, sum);
}
