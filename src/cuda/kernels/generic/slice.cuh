// Slice: y[at] = x[start + at * step].
__device__ inline void unit(const Args& args, int64 n) {
  Index from[kRank_x], at[kRank_y];
  unflatten(n, args.y_dims, at);
  for (int axis = 0; axis < kRank_y; ++axis)
    from[axis] = args.start[axis] + at[axis] * args.step[axis];
  put_y(args, at, in_x(args, from));
}
