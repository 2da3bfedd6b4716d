// Space-to-depth and depth-to-space with padding: y = alpha * moved(x) + beta * z. With f a
// position in a block of `fold` elements:
//   fold:    y[n, (f, c), o] = x[n, c, o * fold + f], x padded with zeros
//   unfold:  y[n, c, o * fold + f] = x[n, (f, c), o], cropped by the padding
__device__ inline void unit(const Args& args, int64 n) {
  Index at[kRank_y], from[kRank_y];
  unflatten(n, args.y_dims, at);
  for (int axis = 0; axis < kRank_y; ++axis)
    from[axis] = at[axis] + (kUnfold ? args.pad_before[axis] : 0);
  if (kFolds > 0 && kUnfold) {
    int64 f = 0;
    for (int axis = 0; axis < kFolds; ++axis) {
      f = f * args.fold[axis] + from[axis + 2] % args.fold[axis];
      from[axis + 2] /= args.fold[axis];
    }
    from[1] += f * (args.x_dims[1] / product(args.fold));
  } else if (kFolds > 0) {
    Index f[kFolds > 0 ? kFolds : 1];
    const Index channels = args.y_dims[1] / product(args.fold);
    unflatten(from[1] / channels, args.fold, f);
    from[1] %= channels;
    for (int axis = 0; axis < kFolds; ++axis)
      from[axis + 2] = from[axis + 2] * args.fold[axis] + f[axis];
  }
  if (!kUnfold)
    for (int axis = 0; axis < kRank_y; ++axis) from[axis] -= args.pad_before[axis];
  R result = is_inside(args.x_dims, from) ? in_x(args, from) : (R)0;
  if (args.alpha != 1) result = (R)args.alpha * result;
  if (args.beta != 0) result += (R)args.beta * in_z(args, at);
  put_y(args, at, result);
}
