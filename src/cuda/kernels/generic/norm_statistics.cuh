// Statistics of one group of a norm, in two passes over its elements.
struct Statistics {
  R mean, variance, inv_variance;
};

__device__ inline R epsilon_of(const Args& args) {
  if constexpr (kHas_epsilon_tensor)
    return in_epsilon_tensor(args, Origin<kRank_epsilon_tensor>().at);
  return (R)args.epsilon;
}
__device__ inline R inverse_root(R variance, R epsilon) { return (R)1 / sqrt(variance + epsilon); }

// mean = sum(x) / n (rms: 0), variance = sum((x - mean)^2) / n
__device__ inline Statistics statistics_of(const Args& args, const Index (&index)[kRank]) {
  const R count = (R)args.group_size;
  Statistics result = {0, 0, 0};
  if (kIsCentred) {
    R sum = 0;
    for_each_in(args.group, args.group_size, index,
                [&](const Index (&at)[kRank]) { sum += in_x(args, at); });
    result.mean = block_sum(sum) / count;
  }
  R squares = 0;
  for_each_in(args.group, args.group_size, index, [&](const Index (&at)[kRank]) {
    const R deviation = in_x(args, at) - result.mean;
    squares += deviation * deviation;
  });
  result.variance = block_sum(squares) / count;
  result.inv_variance = inverse_root(result.variance, epsilon_of(args));
  return result;
}
