// Gather: y[.., i, ..] = x[.., index[i], ..]; outside of x 0, or the nearest element.
__device__ inline void unit(const Args& args, int64 n) {
  Index at[kRank_y], where[kRank_index], from[kRank_x];
  unflatten(n, args.y_dims, at);
  index_place(at, where);
  const Index extent = args.x_dims[kAxis];
  int64 position = integer_index(args, where);
  if (kClamp && position >= extent) position = extent - 1;
  if (kClamp && position < 0 && extent > 0) position = 0;
  R value = 0;
  if (position >= 0 && position < extent) {
    whole_place(at, position, from);
    value = in_x(args, from);
  }
  put_y(args, at, value);
}
