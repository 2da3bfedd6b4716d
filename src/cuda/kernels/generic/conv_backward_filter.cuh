// Convolution, gradient of the filter: one element of dw is the sum of x * dy[o] over images and
// outputs o.
#include "lib/long_sum.cuh"

__device__ inline void unit(const Args& args, int64 n) {
  Index at[kRank], in[kRank], out[kRank];
  unflatten(n, args.dw_dims, at);
  in[1] = at[0] / args.filters * args.channels + at[1];
  LongSum<R> sum;
  const Box<kRank> outputs = spatial_box(args.dy_dims, 0, at[0]);
  for (bool more = outputs.start(out); more; more = outputs.next(out)) {
    if (!find_input(args, args.x_dims, args.dw_dims, out, at, in)) continue;
    Index dy[kRank];
    copy(out, dy);
    for (Index image = 0; image < args.x_dims[0]; ++image) {
      in[0] = dy[0] = image;
      sum.add_product(in_x(args, in), in_dy(args, dy));
    }
  }
  put_dw(args, at, blend(args, sum.total(), in_z(args, at)));
}
