// Padding: y[i] = x[i - before] where x has that element, else a constant or an image of x.
enum Mode { kConstant, kReflect, kEdge, kCircular };

__device__ inline void unit(const Args& args, int64 n) {
  Index at[kRank_y], from[kRank_y];
  unflatten(n, args.y_dims, at);
  for (int axis = 0; axis < kRank_y; ++axis) {
    const Index extent = args.x_dims[axis];
    Index i = at[axis] - args.before[axis];
    if (kMode == kReflect) i = i < 0 ? -i : i >= extent ? 2 * (extent - 1) - i : i;
    if (kMode == kEdge) i = i < 0 ? 0 : i >= extent ? extent - 1 : i;
    if (kMode == kCircular) i = i < 0 ? i + extent : i >= extent ? i - extent : i;
    from[axis] = i;
  }
  put_y(args, at, is_inside(args.x_dims, from) ? in_x(args, from) : (R)args.value);
}
