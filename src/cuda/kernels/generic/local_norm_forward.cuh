// Local norms, forward: y = x * s^-beta.
__device__ inline void unit(const Args& args, int64 n) {
  Index at[kRank];
  unflatten(n, args.x_dims, at);
  put_y(args, at, in_x(args, at) * pow(divisor(args, at), (R)-args.beta));
}
