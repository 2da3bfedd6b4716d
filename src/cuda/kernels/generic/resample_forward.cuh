// Resampling, forward: pooling and interpolation.
__device__ inline R pooled_average(const Args& args, const Index (&out)[kRank]) {
  R sum = 0;
  Index k[kSpatial], in[kRank];
  in[0] = out[0];
  in[1] = out[1];
  const Box<kSpatial> window = whole_box<kSpatial>(args.window);
  for (bool more = window.start(k); more; more = window.next(k))
    if (find_source(args, args.x_dims, out, k, in)) sum += in_x(args, in);
  return average(sum, average_count(args, args.x_dims, out));
}
// Inputs of weight 0 are not read, so that a NaN there does not spread.
__device__ inline R interpolated(const Args& args, const Index (&out)[kRank]) {
  Box<kRank> inputs;
  for (int axis = 0; axis < kRank; ++axis) {
    Index first = out[axis], last = out[axis];
    if (axis >= 2 && kMode == kNearest) {
      first = last = nearest_source(out[axis], args.y_dims[axis], args.x_dims[axis]);
    } else if (axis >= 2) {
      first = (Index)linear_source(out[axis], args.y_dims[axis], args.x_dims[axis]);
      last = first + 1 < args.x_dims[axis] ? first + 1 : first;
    }
    inputs.begin[axis] = first;
    inputs.end[axis] = last + 1;
  }
  R sum = 0;
  Index in[kRank];
  for (bool more = inputs.start(in); more; more = inputs.next(in)) {
    const R weight = interpolation_weight(args.y_dims, out, args.x_dims, in);
    if (weight != 0) sum += weight * in_x(args, in);
  }
  return sum;
}
__device__ inline void unit(const Args& args, int64 n) {
  Index at[kRank];
  unflatten(n, args.y_dims, at);
  if (kMode == kMaxPool) {
    const Maximum largest = window_maximum(args, at);
    put_y(args, at, largest.value);
    put_index(args, at, (double)largest.position);
  } else {
    put_y(args, at, kPooling ? pooled_average(args, at) : interpolated(args, at));
  }
}
