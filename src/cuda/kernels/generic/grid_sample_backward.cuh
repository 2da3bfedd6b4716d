// dx of kChannels channels at one spatial position, accumulated in registers because the weights
// are the same for all channels: sums over every output that reads the position.
__device__ inline void input_gradient(const Args& args, int64 n) {
  int64 places[kRank];
  for (int axis = 0; axis < kRank; ++axis) places[axis] = args.dx_dims[axis];
  places[1] = (args.dx_dims[1] + kChannels - 1) / kChannels;
  Index at[kRank], out[kRank];
  unflatten(n, places, at);
  const Index first = at[1] * kChannels;
  R sums[kChannels] = {};
  Box<kRank> outputs = whole_box<kRank>(args.dy_dims);
  outputs.begin[0] = at[0];
  outputs.end[0] = at[0] + 1;
  outputs.end[1] = 1;
  for (bool more = outputs.start(out); more; more = outputs.next(out)) {
    GridPoint point;
    point.find(args, args.dx_dims, out);
    if (point.is_nan()) continue;
    bool sees = true;
    for (int axis = 0; axis < kSpatial; ++axis)
      sees = sees && at[axis + 2] >= point.axes[axis].first &&
             at[axis + 2] <= point.axes[axis].last;
    const R weight = sees ? point.weight(at) : (R)0;
    if (weight == 0) continue;
    Index dy[kRank];
    copy(out, dy);
#pragma unroll
    for (int c = 0; c < kChannels; ++c) {
      dy[1] = first + c;
      if (dy[1] < args.dx_dims[1]) sums[c] += weight * in_dy(args, dy);
    }
  }
#pragma unroll
  for (int c = 0; c < kChannels; ++c) {
    at[1] = first + c;
    if (at[1] < args.dx_dims[1]) put_dx(args, at, sums[c]);
  }
}

// d loss / d coordinate j of one grid position, over all channels and contributing elements.
__device__ inline R coordinate_gradient(const Args& args, const Index (&at)[kRank]) {
  if (kNearest) return 0;
  const int axis = kSpatial - 1 - (int)at[kRank - 1];
  Index out[kRank], in[kRank];
  out[0] = at[0];
  for (int a = 0; a < kSpatial; ++a) out[a + 2] = at[a + 1];
  GridPoint point;
  point.find(args, args.x_dims, out);
  if (point.is_nan()) return quiet_nan();
  R sum = 0, slope = 0;
  for (Index c = 0; c < args.x_dims[1]; ++c) {
    out[1] = c;
    const Box<kRank> seen = point.seen(at[0], c);
    for (bool more = seen.start(in); more; more = seen.next(in)) {
      const R weight = point.weight(in, axis);
      if (weight != 0) sum += weight * (in_x(args, in) * in_dy(args, out));
    }
  }
  for (int a = 0; a < kSpatial; ++a)
    if (a == axis) slope = point.axes[a].slope;
  return slope != 0 ? slope * sum : (R)0;
}
__device__ inline void unit(const Args& args, int64 n) {
  if (args.pass == 0) return input_gradient(args, n);
  Index at[kRank];
  unflatten(n, args.dgrid_dims, at);
  put_dgrid(args, at, coordinate_gradient(args, at));
}
