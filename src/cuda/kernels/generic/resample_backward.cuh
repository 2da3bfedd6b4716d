// Resampling, backward: every element of dx sums the gradients of the outputs that read it.

// A superset of the outputs that may have read element `i` of an axis, as a range.
__device__ inline void outputs_of(const Args& args, int axis, Index i, Index& begin, Index& end) {
  const Index in_extent = args.dx_dims[axis + 2], out_extent = args.dy_dims[axis + 2];
  if (kPooling) {
    const Index padded = i + args.padding[axis], first = padded - args.window[axis] + 1;
    begin = (first > 0 ? first : 0) / args.stride[axis];
    end = padded / args.stride[axis] + 1;
  } else {
    // Output o is near input o / ratio; an input contributes up to one input spacing to either
    // side.
    const double ratio = kAlignCorners && in_extent > 1 && kMode == kBilinear
                             ? (double)(out_extent - 1) / (double)(in_extent - 1)
                             : (double)out_extent / (double)in_extent;
    begin = (Index)floor(((double)i - 1.5) * ratio) - 2;
    end = (Index)ceil(((double)i + 2.5) * ratio) + 3;
  }
  // Border elements also serve outputs beyond the border.
  if (i == 0 || begin < 0) begin = 0;
  if (i == in_extent - 1 || end > out_extent) end = out_extent;
}
// Whether the maximum of the window of `out` is element `in` of x.
__device__ inline bool is_argmax(const Args& args, const Index (&out)[kRank],
                                    const Index (&in)[kRank]) {
  const Index position =
      kHas_index ? (Index)integer_index(args, out) : window_maximum(args, out).position;
  if (position < 0 || position >= product(args.window)) return false;
  Index k[kSpatial], source[kRank];
  unflatten(position, args.window, k);
  if (!find_source(args, args.dx_dims, out, k, source)) return false;
  bool here = true;
  for (int axis = 2; axis < kRank; ++axis) here = here && source[axis] == in[axis];
  return here;
}
__device__ inline R gradient_share(const Args& args, const Index (&out)[kRank],
                                const Index (&in)[kRank]) {
  if (kMode == kMaxPool) return is_argmax(args, out, in) ? in_dy(args, out) : (R)0;
  if (!kPooling) {
    const R weight = interpolation_weight(args.dy_dims, out, args.dx_dims, in);
    return weight != 0 ? weight * in_dy(args, out) : (R)0;
  }
  for (int axis = 0; axis < kSpatial; ++axis) {
    const Index first = window_start(args, axis, out[axis + 2]);
    if (in[axis + 2] < first || in[axis + 2] >= first + args.window[axis]) return 0;
  }
  return average(in_dy(args, out), average_count(args, args.dx_dims, out));
}
__device__ inline void unit(const Args& args, int64 n) {
  Index at[kRank], out[kRank];
  unflatten(n, args.dx_dims, at);
  Box<kRank> outputs;
  for (int axis = 0; axis < kRank; ++axis) {
    outputs.begin[axis] = at[axis];
    outputs.end[axis] = at[axis] + 1;
    if (axis >= 2) outputs_of(args, axis - 2, at[axis], outputs.begin[axis], outputs.end[axis]);
  }
  R sum = 0;
  for (bool more = outputs.start(out); more; more = outputs.next(out))
    sum += gradient_share(args, out, at);
  put_dx(args, at, sum);
}
