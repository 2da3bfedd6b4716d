// Norms, forward, one CTA per group: y = (x - mean) * inv_variance * scale + bias.
__device__ inline Statistics forward_statistics(const Args& args, const Index (&index)[kRank]) {
  if constexpr (kHas_mean) {
    return {in_mean(args, index), 0, in_inv_variance(args, index)};
  } else if constexpr (kFromRunning) {
    const R variance = in_running_var(args, index);
    return {in_running_mean(args, index), variance, inverse_root(variance, epsilon_of(args))};
  } else {
    return statistics_of(args, index);
  }
}

// (1 - momentum) * running + momentum * batch
__device__ inline R moved(const Args& args, R running, R batch) {
  R momentum = (R)args.momentum;
  if constexpr (kHas_momentum_tensor)
    momentum = in_momentum_tensor(args, Origin<kRank_momentum_tensor>().at);
  return ((R)1 - momentum) * running + momentum * batch;
}

__device__ inline void unit(const Args& args, int64 n) {
  Index index[kRank];
  unflatten(n, args.statistics, index);
  const Statistics statistics = forward_statistics(args, index);
  for_each_in(args.group, args.group_size, index, [&](const Index (&at)[kRank]) {
    R value = (in_x(args, at) - statistics.mean) * statistics.inv_variance;
    if constexpr (kHas_scale) value = value * in_scale(args, at);
    if constexpr (kHas_bias) value = value + in_bias(args, at);
    put_y(args, at, value);
  });
  if (threadIdx.x != 0) return;
  if constexpr (kHas_out_mean) put_out_mean(args, index, statistics.mean);
  if constexpr (kHas_out_inv_variance)
    put_out_inv_variance(args, index, statistics.inv_variance);
  if constexpr (kHas_next_running_mean)
    put_next_running_mean(args, index,
                          moved(args, in_running_mean(args, index), statistics.mean));
  // Unbiased running variance: n / (n - 1) times the batch variance, 0 for a single element.
  if constexpr (kHas_next_running_var)
    put_next_running_var(args, index,
                         moved(args, in_running_var(args, index),
                               statistics.variance * (R)args.unbiased));
}
