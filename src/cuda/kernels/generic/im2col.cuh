// im2col: y[n, (c, k), o] = x[n, c, o * stride - padding + k * dilation], or 0 outside x.
__device__ inline void unit(const Args& args, int64 n) {
  Index at[3], k[kSpatial], out[kSpatial], in[kRank_x];
  unflatten(n, args.y_dims, at);
  unflatten(at[1] % product(args.window), args.window, k);
  unflatten(at[2], args.counts, out);
  in[0] = at[0];
  in[1] = at[1] / product(args.window);
  for (int axis = 0; axis < kSpatial; ++axis)
    in[axis + 2] =
        out[axis] * args.stride[axis] - args.padding[axis] + k[axis] * args.dilation[axis];
  put_y(args, at, is_inside(args.x_dims, in) ? in_x(args, in) : (R)0);
}
