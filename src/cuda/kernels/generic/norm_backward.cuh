// Norms, backward. With g = dy * scale and x_hat = (x - mean) * inv_variance:
//   dx = inv_variance * (g - mean(g) - x_hat * mean(g * x_hat))       (rms: without mean(g))
//   dscale = sum(dy * x_hat), dbias = sum(dy), over all elements that share a parameter
// Pass 0: one CTA per group; it stores mean and inv_variance for pass 1. Pass 1: one CTA per
// parameter.
__device__ inline Statistics backward_statistics(const Args& args, const Index (&index)[kRank]) {
  if constexpr (kHas_inv_variance) {
    Statistics given = {0, 0, in_inv_variance(args, index)};
    if constexpr (kHas_mean) given.mean = in_mean(args, index);
    return given;
  } else {
    return statistics_of(args, index);
  }
}

__device__ inline R scaled_gradient(const Args& args, const Index (&at)[kRank]) {
  R gradient = in_dy(args, at);
  if constexpr (kHas_scale) gradient *= in_scale(args, at);
  return gradient;
}

__device__ inline void input_gradient(const Args& args, int64 n) {
  Index index[kRank];
  unflatten(n, args.statistics, index);
  const Statistics statistics = backward_statistics(args, index);
  if (threadIdx.x == 0) {
    ((R*)args.kept_statistics)[2 * n] = statistics.mean;
    ((R*)args.kept_statistics)[2 * n + 1] = statistics.inv_variance;
  }
  R gradients = 0, products = 0;
  for_each_in(args.group, args.group_size, index, [&](const Index (&at)[kRank]) {
    const R gradient = scaled_gradient(args, at);
    gradients += gradient;
    products += gradient * ((in_x(args, at) - statistics.mean) * statistics.inv_variance);
  });
  const R count = (R)args.group_size;
  const R mean_gradient = kIsCentred ? block_sum(gradients) / count : (R)0;
  const R mean_product = block_sum(products) / count;
  for_each_in(args.group, args.group_size, index, [&](const Index (&at)[kRank]) {
    const R x_hat = (in_x(args, at) - statistics.mean) * statistics.inv_variance;
    put_dx(args, at,
           statistics.inv_variance *
               (scaled_gradient(args, at) - mean_gradient - x_hat * mean_product));
  });
}

__device__ inline void parameter_gradients(const Args& args, int64 n) {
  Index index[kRank];
  unflatten(n, args.parameters, index);
  R dscale = 0, dbias = 0;
  for_each_in(args.reach, args.reach_size, index, [&](const Index (&at)[kRank]) {
    int64 group = 0;
    for (int axis = 0; axis < kRank; ++axis)
      group = group * args.statistics[axis] + at[axis] / args.group[axis];
    const R* statistics = (const R*)args.kept_statistics + 2 * group;
    const R gradient = in_dy(args, at);
    dscale += gradient * ((in_x(args, at) - statistics[0]) * statistics[1]);
    dbias += gradient;
  });
  dscale = block_sum(dscale);
  dbias = block_sum(dbias);
  if (threadIdx.x != 0) return;
  if constexpr (kHas_dscale) put_dscale(args, index, dscale);
  if constexpr (kHas_dbias) put_dbias(args, index, dbias);
}

__device__ inline void unit(const Args& args, int64 n) {
  if (args.pass == 0)
    input_gradient(args, n);
  else
    parameter_gradients(args, n);
}
