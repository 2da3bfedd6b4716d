// Concatenation: copies one input to offset args.begin along the axis.
__device__ inline void unit(const Args& args, int64 n) {
  Index at[kRank_y];
  unflatten(n, args.x_dims, at);
  const R value = in_x(args, at);
  at[kAxis] += args.begin;
  put_y(args, at, value);
}
