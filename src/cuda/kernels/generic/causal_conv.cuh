// Causal depthwise convolution: y[t] = act(bias + sum over i of w[i] * past[t + i]) per channel,
// where past is initial_state (absent: zeros) followed by x, so that past[t + K - 1] = x[t].
__device__ inline Index history(const Args& args) { return args.w_dims[1] - 1; }
__device__ inline R past(const Args& args, Index b, Index c, Index position) {
  if (position >= history(args)) return in_x(args, {b, c, position - history(args)});
  return in_initial_state(args, {b, c, position});
}
// The value before the activation.
__device__ inline R sum_at(const Args& args, Index b, Index c, Index t) {
  R sum = 0;
  for (Index i = 0; i <= history(args); ++i) {
    if (!kHas_initial_state && t + i < history(args)) continue;
    sum += in_w(args, {c, i}) * past(args, b, c, t + i);
  }
  return kHas_bias ? sum + in_bias(args, {c}) : sum;
}
