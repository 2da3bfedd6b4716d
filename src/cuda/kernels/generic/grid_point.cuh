// Grid sampling: the point of x that one grid position refers to. Coordinate j of a position
// belongs to spatial axis d - 1 - j: x comes first.
enum Padding { kZeros, kBorder, kReflection };
static const int kRank = kSpatial + 2;

// Triangle wave between `low` and `high` with slope +-1, rising from `low`.
__device__ inline R reflected(R x, R low, R high, R& slope) {
  const R span = high - low;
  if (span == 0) {
    slope = 0;
    return x != x ? x : (R)0;
  }
  // Even periods rise, odd ones fall.
  slope = fmod(fabs(floor((x - low) / span)), (R)2) == 0 ? (R)1 : (R)-1;
  if (x >= low && x <= high) return x;
  const R rest = fmod(fabs(x - low), (R)2 * span);
  return low + (rest > span ? (R)2 * span - rest : rest);
}

// Along one axis: the position, d position / d coordinate, and the range of contributing elements.
struct AxisPosition {
  R position, slope;
  Index cell, first, last;

  __device__ void find(R coordinate, Index extent) {
    const R size = (R)extent, end = size - (R)1;
    // -1 and 1 are the centres of the corner elements, or their outer edges.
    const R scale = kAlignCorners ? (R)0.5 * end : (R)0.5 * size;
    const R shifted = coordinate + (R)1;
    position = kAlignCorners ? shifted * scale : (shifted * size - (R)1) * (R)0.5;
    slope = 1;
    if (kPadding == kReflection)
      position = kAlignCorners ? reflected(position, (R)0, end, slope)
                               : reflected(position, (R)-0.5, size - (R)0.5, slope);
    if (kPadding != kZeros) {
      if (!(position > 0 && position < end)) slope = 0;
      position = position < 0 ? (R)0 : position > end ? end : position;
    }
    slope *= scale;
    // The nearest element (ties to even), or the one at or below. Clamped to avoid integer
    // overflow.
    const R inside =
        position < (R)-3 ? (R)-3 : position > size + (R)3 ? size + (R)3 : position;
    cell = position != position ? 0 : (Index)(kNearest ? rint(inside) : floor(inside));
    first = cell < 0 ? 0 : cell;
    last = cell + (kNearest ? 0 : 1);
    if (last > extent - 1) last = extent - 1;
  }
  __device__ R weight(Index i) const {
    if (kNearest) return cell == i ? (R)1 : (R)0;
    const R w = (R)1 - fabs(position - (R)i);
    return w > 0 ? w : (R)0;
  }
  // d weight / d position
  __device__ R weight_slope(Index i) const {
    return i == cell ? (R)-1 : i == cell + 1 ? (R)1 : (R)0;
  }
};

struct GridPoint {
  AxisPosition axes[kSpatial];

  // `out` is an index of y.
  __device__ void find(const Args& args, const int64* x_dims, const Index (&out)[kRank]) {
    Index at[kRank];
    at[0] = out[0];
    for (int axis = 0; axis < kSpatial; ++axis) at[axis + 1] = out[axis + 2];
    for (int axis = 0; axis < kSpatial; ++axis) {
      at[kRank - 1] = kSpatial - 1 - axis;
      axes[axis].find(in_grid(args, at), x_dims[axis + 2]);
    }
  }
  __device__ bool is_nan() const {
    bool any = false;
    for (int axis = 0; axis < kSpatial; ++axis)
      any = any || axes[axis].position != axes[axis].position;
    return any;
  }
  // The elements of x[n, c] that contribute.
  __device__ Box<kRank> seen(Index n, Index c) const {
    Box<kRank> box;
    box.begin[0] = n;
    box.end[0] = n + 1;
    box.begin[1] = c;
    box.end[1] = c + 1;
    for (int axis = 0; axis < kSpatial; ++axis) {
      box.begin[axis + 2] = axes[axis].first;
      box.end[axis + 2] = axes[axis].last + 1;
    }
    return box;
  }
  // Interpolation weight of an element; along axis `changing` its derivative instead.
  __device__ R weight(const Index (&in)[kRank], int changing = -1) const {
    R result = 1;
    for (int axis = 0; axis < kSpatial; ++axis)
      result *= axis == changing ? axes[axis].weight_slope(in[axis + 2])
                                 : axes[axis].weight(in[axis + 2]);
    return result;
  }
};
