// Base grid of the spatial transformer: the factor of theta[n, :, k] at a grid position. Coordinate
// k in [-1, 1] belongs to axis d - k; the last one is 1.
template <int kRank>
__device__ inline R base(const int64* grid_dims, const Index (&at)[kRank], Index k) {
  const int spatial = kRank - 2;
  if (k == spatial) return 1;
  const int axis = spatial - (int)k;  // 1 is the first after the batch
  const Index extent = grid_dims[axis];
  if (extent == 1) return 0;
  const R steps =
      kAlignCorners ? (R)(2 * at[axis]) / (R)(extent - 1) : (R)(2 * at[axis] + 1) / (R)extent;
  return steps - (R)1;
}
