// Coefficients of batch norm from the sums of a channel: one thread per channel.
__device__ inline void unit(const Args& args, int64 n) {
  Index channel[kRank];
  channel_position(n, channel);
  R epsilon = (R)args.epsilon, momentum = (R)args.momentum, count = (R)args.count;
  if constexpr (kHas_epsilon_tensor)
    epsilon = in_epsilon_tensor(args, Origin<kRank_epsilon_tensor>().at);
  if constexpr (kHas_momentum_tensor)
    momentum = in_momentum_tensor(args, Origin<kRank_momentum_tensor>().at);
  if constexpr (kHas_count_tensor) count = in_count_tensor(args, Origin<kRank_count_tensor>().at);

  R mean, variance;
  if constexpr (kFromRunning) {
    mean = in_running_mean(args, channel);
    variance = in_running_var(args, channel);
  } else {
    mean = in_sum(args, channel) / count;
    // Cancellation may make the difference negative.
    variance = max_or_nan(in_sq_sum(args, channel) / count - mean * mean, (R)0);
  }
  const R inv_variance = (R)1 / sqrt(variance + epsilon);
  const R eq_scale = in_scale(args, channel) * inv_variance;
  put_eq_scale(args, channel, eq_scale);
  if constexpr (kHas_eq_bias)
    put_eq_bias(args, channel, in_bias(args, channel) - mean * eq_scale);
  if constexpr (kHas_saved_mean) put_saved_mean(args, channel, mean);
  if constexpr (kHas_saved_inv_variance) put_saved_inv_variance(args, channel, inv_variance);
  // Unbiased running variance: n / (n - 1) times the batch variance, unchanged for n = 1.
  const R unbiased = count > (R)1 ? variance * (count / (count - (R)1)) : variance;
  if constexpr (kHas_next_running_mean)
    put_next_running_mean(
        args, channel, ((R)1 - momentum) * in_running_mean(args, channel) + momentum * mean);
  if constexpr (kHas_next_running_var)
    put_next_running_var(
        args, channel, ((R)1 - momentum) * in_running_var(args, channel) + momentum * unbiased);
}
