// Sampling grid: theta times the base grid.
__device__ inline void unit(const Args& args, int64 n) {
  Index at[kRank_grid];
  unflatten(n, args.grid_dims, at);
  R sum = 0;
  for (Index k = 0; k < args.theta_dims[2]; ++k)
    sum += in_theta(args, {at[0], at[kRank_grid - 1], k}) * base(args.grid_dims, at, k);
  put_grid(args, at, sum);
}
