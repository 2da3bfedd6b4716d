// y = (x - zero_point) * scale per block, negated where the attribute says so.
__device__ inline void unit(const Args& args, int64 n) {
  Index at[kRank_y], block[kRank_y];
  unflatten(n, args.y_dims, at);
  for (int axis = 0; axis < kRank_y; ++axis) block[axis] = at[axis] / args.block_size[axis];
  R number = in_x(args, at);
  if constexpr (kHas_zero_point) number -= in_zero_point(args, block);
  scale_position(args.scale_dims, block);
  const R scaled = number * in_scale(args, block);
  put_y(args, at, kNegative ? -scaled : scaled);
}
