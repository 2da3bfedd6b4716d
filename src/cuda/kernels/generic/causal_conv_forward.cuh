// Causal depthwise convolution, forward. Pass 0: y, pass 1: final_state.
__device__ inline void unit(const Args& args, int64 n) {
  Index at[3];
  if (args.pass == 0) {
    unflatten(n, args.y_dims, at);
    const R sum = sum_at(args, at[0], at[1], at[2]);
    put_y(args, at, kSilu ? op_swish_fwd(sum, (R)1) : sum);
  } else {
    unflatten(n, args.final_state_dims, at);
    put_final_state(args, at, past(args, at[0], at[1], args.x_dims[2] + at[2]));
  }
}
