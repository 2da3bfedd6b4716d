// Convolution: tap r of output o reads x at i = o * stride - padding + r * dilation (outside x:
// zero) and multiplies it with w[r], or with w[R - 1 - r] in mode `convolution` (kFlip).
static const int kRank = kSpatial + 2;

// The tap that the weight stored at `at` belongs to.
__device__ inline Index tap_of(const int64* w_dims, const Index (&at)[kRank], int axis) {
  return kFlip ? w_dims[axis] - 1 - at[axis] : at[axis];
}
// Sets the spatial part of `in` to the element of x that the weight at `at` multiplies for output
// `out`. False: padding.
__device__ inline bool find_input(const Args& args, const int64* x_dims, const int64* w_dims,
                                  const Index (&out)[kRank], const Index (&at)[kRank],
                                  Index (&in)[kRank]) {
  bool inside = true;
  for (int axis = 2; axis < kRank; ++axis) {
    in[axis] = out[axis] * args.stride[axis - 2] - args.padding[axis - 2] +
               tap_of(w_dims, at, axis) * args.dilation[axis - 2];
    inside = inside && in[axis] >= 0 && in[axis] < x_dims[axis];
  }
  return inside;
}
// Sets the spatial part of `out` to the output for which the weight at `at` multiplies x at `in`.
// False: none.
__device__ inline bool find_output(const Args& args, const int64* y_dims, const int64* w_dims,
                                   const Index (&in)[kRank], const Index (&at)[kRank],
                                   Index (&out)[kRank]) {
  bool inside = true;
  for (int axis = 2; axis < kRank; ++axis) {
    const Index scaled = in[axis] + args.padding[axis - 2] -
                         tap_of(w_dims, at, axis) * args.dilation[axis - 2];
    out[axis] = scaled / args.stride[axis - 2];
    inside = inside && scaled >= 0 && scaled % args.stride[axis - 2] == 0 &&
             out[axis] < y_dims[axis];
  }
  return inside;
}
// All spatial coordinates, the first two fixed.
__device__ inline Box<kRank> spatial_box(const int64* dims, Index first, Index second) {
  Box<kRank> box = whole_box<kRank>(dims);
  box.begin[0] = first;
  box.end[0] = first + 1;
  box.begin[1] = second;
  box.end[1] = second + 1;
  return box;
}
__device__ inline R blend(const Args& args, R sum, R z) {
  const R scaled = (R)args.alpha * sum;
  return args.beta != 0 ? scaled + (R)args.beta * z : scaled;
}
