// Normalisation by a neighbourhood: LRN over channels (axis 1), divisive over the spatial axes
// (2 and up). With d(j) = x(j) - mean(j) and the window of i:
//   s(i)  = k + factor * sum of d(j)^2 over the window of i
//   y(i)  = x(i) * s(i)^-beta
//   dx(j) = dy(j) * s(j)^-beta - c(j)        dmeans(j) = c(j)
//   c(j)  = 2 factor beta * d(j) * sum of dy(i) x(i) s(i)^(-beta - 1)
//           over all i whose window holds j
static const int kRank = kRank_x;

// What lies up to `down` and `up` from an element along the axes of the window.
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
__device__ inline R deviation(const Args& args, const Index (&at)[kRank]) {
  return kHas_means ? in_x(args, at) - in_means(args, at) : in_x(args, at);
}
__device__ inline R divisor(const Args& args, const Index (&at)[kRank]) {
  R squares = 0;
  Index other[kRank];
  const Box<kRank> window = around(args, at, args.below, args.above);
  for (bool more = window.start(other); more; more = window.next(other)) {
    const R d = deviation(args, other);
    squares += d * d;
  }
  return (R)args.k + (R)args.factor * squares;
}
