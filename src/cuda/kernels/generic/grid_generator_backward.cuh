// Gradient of theta: sums dgrid times the base grid over all positions.
__device__ inline void unit(const Args& args, int64 n) {
  Index to[3], at[kRank_dgrid];
  unflatten(n, args.dtheta_dims, to);
  Box<kRank_dgrid> positions = whole_box<kRank_dgrid>(args.dgrid_dims);
  positions.begin[0] = to[0];
  positions.end[0] = to[0] + 1;
  positions.begin[kRank_dgrid - 1] = to[1];
  positions.end[kRank_dgrid - 1] = to[1] + 1;
  R sum = 0;
  for (bool more = positions.start(at); more; more = positions.next(at))
    sum += in_dgrid(args, at) * base(args.dgrid_dims, at, to[2]);
  put_dtheta(args, to, sum);
}
