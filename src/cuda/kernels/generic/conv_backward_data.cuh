// Convolution, gradient of the input: one element of dx is the sum of dy[o] * w[r] over the outputs
// o and taps r that read it.
#include "lib/long_sum.cuh"

__device__ inline void unit(const Args& args, int64 n) {
  Index at[kRank], out[kRank], tap[kRank];
  unflatten(n, args.dx_dims, at);
  const Index first_filter = at[1] / args.channels * args.filters;
  out[0] = at[0];
  LongSum<R> sum;
  const Box<kRank> taps = spatial_box(args.w_dims, 0, at[1] % args.channels);
  for (bool more = taps.start(tap); more; more = taps.next(tap)) {
    if (!find_output(args, args.dy_dims, args.w_dims, at, tap, out)) continue;
    Index w[kRank];
    copy(tap, w);
    for (Index k = first_filter; k < first_filter + args.filters; ++k) {
      out[1] = w[0] = k;
      sum.add_product(in_dy(args, out), in_w(args, w));
    }
  }
  put_dx(args, at, blend(args, sum.total(), in_z(args, at)));
}
