// Causal depthwise convolution, backward. With g[t] = dy[t] * act'(sum[t]):
//   dpast[p] = sum over i of w[i] * g[p - i],  dw[i] = sum over b, t of g[t] * past[t + i],
//   dbias = sum over b, t of g[t]
__device__ inline R gradient(const Args& args, Index b, Index c, Index t) {
  const R g = in_dy(args, {b, c, t});
  return kSilu ? op_swish_bwd(g, sum_at(args, b, c, t), (R)1) : g;
}
__device__ inline R dpast(const Args& args, Index b, Index c, Index position) {
  R sum = 0;
  for (Index i = 0; i <= history(args); ++i) {
    const Index t = position - i;
    if (t >= 0 && t < args.x_dims[2]) sum += in_w(args, {c, i}) * gradient(args, b, c, t);
  }
  return sum;
}
// Sum over batches and time of g * past, or of g.
__device__ inline R sum_over_time(const Args& args, Index c, bool with_past, Index i) {
  R sum = 0;
  for (Index b = 0; b < args.x_dims[0]; ++b)
    for (Index t = 0; t < args.x_dims[2]; ++t)
      sum += gradient(args, b, c, t) * (with_past ? past(args, b, c, t + i) : (R)1);
  return sum;
}
__device__ inline void unit(const Args& args, int64 n) {
  Index at[3], tap[2];
  if (args.pass == 0) {
    unflatten(n, args.dx_dims, at);
    put_dx(args, at, dpast(args, at[0], at[1], at[2] + history(args)));
  } else if (args.pass == 1) {
    unflatten(n, args.dw_dims, tap);
    put_dw(args, tap, sum_over_time(args, tap[0], true, tap[1]));
  } else if (args.pass == 2) {
    put_dbias(args, {n}, sum_over_time(args, n, false, 0));
  } else {
    unflatten(n, args.dinitial_state_dims, at);
    put_dinitial_state(args, at, dpast(args, at[0], at[1], at[2]));
  }
}
