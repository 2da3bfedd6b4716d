// dx = scale * inv_variance * (dy - dbias / n - x_hat * dscale / n) as an affine function of dy and
// x; one CTA per channel computes its coefficients.
__device__ inline void unit(const Args& args, int64 n) {
  Index channel[kRank];
  channel_position(n, channel);
  const R mean = in_mean(args, channel), inv_variance = in_inv_variance(args, channel);
  R gradients = 0, products = 0;
  for_each_in(args.group, args.group_size, channel, [&](const Index (&at)[kRank]) {
    const R gradient = in_dy(args, at);
    gradients += gradient;
    products += gradient * ((in_x(args, at) - mean) * inv_variance);
  });
  const R dbias = block_sum(gradients), dscale = block_sum(products), count = (R)args.group_size;
  if (threadIdx.x != 0) return;
  const R slope = in_scale(args, channel) * inv_variance;
  const R x_slope = -(slope * inv_variance * (dscale / count));
  put_dscale(args, channel, dscale);
  if constexpr (kHas_dbias) put_dbias(args, channel, dbias);
  if constexpr (kHas_eq_dy_scale) put_eq_dy_scale(args, channel, slope);
  if constexpr (kHas_eq_x_scale) put_eq_x_scale(args, channel, x_slope);
  if constexpr (kHas_eq_bias)
    put_eq_bias(args, channel, -(slope * (dbias / count)) - x_slope * mean);
}
