// Block-scaled quantisation.
//
// The next larger value of type D for positive x; the bit patterns of positive values are ordered.
template <class D>
__device__ inline double after(D d, double x) {
  typename D::Word word = narrow(d, x);
  return (double)widen(d, (typename D::Word)(word + 1));
}
__device__ inline double after(f32, double x) {
  return (double)__uint_as_float(__float_as_uint((float)x) + 1u);
}
// The smallest scale with scale * largest >= amax; saturates at the largest finite scale.
__device__ inline double scale_for(double amax, double largest, double largest_scale) {
  if (amax == 0 || amax != amax) return round_through(Scale(), amax);
  const double quotient = amax / largest;
  if (quotient >= largest_scale) return largest_scale;
  const double nearest = round_through(Scale(), quotient);
  return nearest * largest < amax ? after(Scale(), quotient) : nearest;
}

// Pass 0 clears the padding of scale tiles, pass 1 quantises one block per unit.
__device__ inline void unit(const Args& args, int64 n) {
  Index block[kRank_x], at[kRank_x];
  if (args.pass == 0) {
    unflatten(n, args.scale_dims, block);
    return put_scale(args, block, 0.0);
  }
  unflatten(n, args.blocks, block);
  Box<kRank_x> box;
  for (int axis = 0; axis < kRank_x; ++axis) {
    box.begin[axis] = block[axis] * args.block_size[axis];
    const Index end = box.begin[axis] + args.block_size[axis];
    box.end[axis] = end < args.x_dims[axis] ? end : args.x_dims[axis];
  }
  R amax = 0;
  for (bool more = box.start(at); more; more = box.next(at))
    amax = op_max(amax, (R)fabs(in_x(args, at)));
  const double scale = scale_for((double)amax, args.largest, args.largest_scale);
  scale_position(args.scale_dims, block);
  put_scale(args, block, scale);
  // Avoids 0 / 0 in blocks of zeros.
  for (bool more = box.start(at); more; more = box.next(at))
    put_y(args, at, scale == 0 ? in_x(args, at) : in_x(args, at) / (R)scale);
}
