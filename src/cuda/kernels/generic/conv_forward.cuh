// Convolution, forward: one element of y.
#include "lib/long_sum.cuh"

__device__ inline void unit(const Args& args, int64 n) {
  Index at[kRank], in[kRank], tap[kRank];
  unflatten(n, args.y_dims, at);
  const Index first_channel = at[1] / args.filters * args.channels;
  in[0] = at[0];
  LongSum<R> sum;
  const Box<kRank> taps = spatial_box(args.w_dims, at[1], 0);
  for (bool more = taps.start(tap); more; more = taps.next(tap)) {
    if (!find_input(args, args.x_dims, args.w_dims, at, tap, in)) continue;
    Index w[kRank];
    copy(tap, w);
    for (w[1] = 0; w[1] < args.channels; ++w[1]) {
      in[1] = first_channel + w[1];
      sum.add_product(in_x(args, in), in_w(args, w));
    }
  }
  put_y(args, at, blend(args, sum.total(), in_z(args, at)));
}
