// Local response norm over channels (axis 1) and divisive norm over the spatial axes (2 and up).
// With d(j, i) = x(j) - mean(i) for j in the window of i, and g(i) = 2 factor beta dy(i) x(i)
// s(i)^(-beta - 1):
//   s(i)      = k + factor * sum of d(j, i)^2 over the window of i
//   y(i)      = x(i) * s(i)^-beta
//   dx(j)     = dy(j) * s(j)^-beta - sum of g(i) d(j, i) over all i whose window contains j
//   dmeans(i) = g(i) * sum of d(j, i) over the window of i
static const int kRank = kRank_x;

// The box from `down` below to `up` above an element along the window's axes, clipped to x.
__device__ inline Box<kRank> around(const Args& args, const Index (&at)[kRank], int64 down,
                                    int64 up) {
  Box<kRank> box;
  for (int axis = 0; axis < kRank; ++axis) {
    const bool inside = kDivisive ? axis >= 2 : axis == 1;
    const Index left = args.x_dims[axis] - at[axis] - 1;
    box.begin[axis] = inside ? at[axis] - (at[axis] < down ? at[axis] : down) : at[axis];
    box.end[axis] = at[axis] + 1 + (inside ? (left < up ? left : up) : 0);
  }
  return box;
}
__device__ inline R mean_at(const Args& args, const Index (&at)[kRank]) {
  return kHas_means ? in_means(args, at) : (R)0;
}
__device__ inline R divisor(const Args& args, const Index (&at)[kRank]) {
  const R mean = mean_at(args, at);
  R squares = 0;
  Index other[kRank];
  const Box<kRank> window = around(args, at, args.below, args.above);
  for (bool more = window.start(other); more; more = window.next(other)) {
    const R d = in_x(args, other) - mean;
    squares += d * d;
  }
  return (R)args.k + (R)args.factor * squares;
}
